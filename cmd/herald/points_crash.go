// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build crashpoints

package main

import (
	"os"
	"syscall"
)

// crashPoint kills the process, as kill -9 does, when it reaches the point of
// the protocol that HERALD_CRASH_POINT names. It is built for the crash matrix
// only.
func crashPoint() func(string) {
	at := os.Getenv("HERALD_CRASH_POINT")
	return func(point string) {
		if point == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}
