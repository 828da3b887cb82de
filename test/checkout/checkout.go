// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkout finds the checkout's root directory for tests. It is for tests only.
package checkout

import (
	"bytes"
	"os"
	"path/filepath"
)

// module is the first line of the root go.mod.
var module = []byte("module github.com/herald-social/herald\n")

// Root returns the checkout's root: the first directory above the working directory whose go.mod has the module's name. Go runs a test in
// its package's directory. Root returns "." if there is none.
func Root() string {
	folder, err := os.Getwd()
	if err != nil {
		return "."
	}
	for {
		if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err == nil && bytes.HasPrefix(text, module) {
			return folder
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "."
		}
		folder = above
	}
}
