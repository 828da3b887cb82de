// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package isolate

import (
	"fmt"
	"net"
	"os"
	"os/exec"
)

// On systems that are only used for development, separate processes are not confined. Decoders in Go run regardless;
// other programs do not.

func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func isolate(*exec.Cmd) {}

// Enter does nothing on this system.
func Enter(Limits) error {
	_ = raceEnabled // The race detector makes no difference here.
	return nil
}

// Exec fails on this system.
func Exec(Limits, string, []string) (code int, err error) {
	return ExitNotIsolated, errUnsupported()
}

// Program is a process that calls Exec. This system has none.
type Program struct{ net.Listener }

// Start fails on this system.
func Start(*exec.Cmd, Limits, *os.File) (*Program, error) { return nil, errUnsupported() }

// Wait does nothing on this system.
func (*Program) Wait() error { return errUnsupported() }

func errUnsupported() error {
	return fmt.Errorf("%w: this system has no filters for system calls; use Linux on amd64 or arm64", ErrNotIsolated)
}
