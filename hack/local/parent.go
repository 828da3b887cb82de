// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"time"

	"github.com/herald-social/herald/hack/local/process"
)

// starters are the programs that wait for this one in the foreground. They pass on a Ctrl-C, which the terminal sends to
// all, but not every other end of theirs: a `go run` that is told to end simply goes.
var starters = []string{"go", "make", "gmake"}

// parentPoll is how often the parent is looked at.
const parentPoll = 250 * time.Millisecond

// watchParent calls gone when the program that started this one in the foreground has ended, so that an end by other
// means than Ctrl-C leaves nothing running either. Any other parent, such as a shell that started this in the
// background, may go.
func watchParent(gone func()) {
	parent := os.Getppid()
	if !slices.Contains(starters, process.Name(parent)) {
		return
	}
	ticker := time.NewTicker(parentPoll)
	defer ticker.Stop()
	for range ticker.C {
		if os.Getppid() != parent {
			gone()
			return
		}
	}
}
