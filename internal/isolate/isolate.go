// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolate runs what reads the files of strangers in a process apart. Such a
// process has no environment, is a group of its own that is killed as a whole, and
// ends with the process that started it. On Linux it gives up by itself, before it
// sees the first foreign byte, what it does not need: more memory, processor time and
// files than it was allotted, and every system call but a few. No privilege is needed
// for that, and no namespace.
//
// The process is this program again, started with arguments that the caller chooses.
// It calls Enter and then decodes, or it calls Exec and becomes another program. Both
// are called by a process that has nothing else to do.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Limits bound what a process may use.
type Limits struct {
	// Data bounds what it may write to in memory, and AddressSpace all memory of a
	// program that Start starts, in bytes; zero sets no bound. Programs in Go
	// reserve addresses that they do not use: bound Data there.
	Data, AddressSpace uint64
	// CPU bounds the time of the processor, in full seconds.
	CPU time.Duration
	// Files bounds how many files may be open at once.
	Files uint64
	// Output bounds the file that Start lets a program write, in bytes; zero lets it write
	// none.
	Output uint64
}

// Exit codes of a process that did not get as far as to decode. A crash of a program in
// Go has 2.
const (
	// ExitNotIsolated says that it could not give up what it must not have.
	ExitNotIsolated = 70
	// ExitNotStarted says that Exec did not find the program, or may not run it.
	ExitNotStarted = 71
)

// killTimeout is how long to wait for what a killed process has still open.
const killTimeout = 5 * time.Second

// Self returns a command that starts this program with these arguments, behind its
// name. It is killed with its group when the context ends. On Linux it is also killed
// when the thread that started it ends: hold that by runtime.LockOSThread until it was
// waited for.
func Self(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self()) //nolint:gosec // it is this program
	cmd.Args = append([]string{"herald"}, args...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.WaitDelay = killTimeout
	isolate(cmd)
	return cmd
}

// ExitReason is how a process ended.
type ExitReason string

// Endings of a process.
const (
	// Exited is an end by itself, with whatever exit code.
	Exited ExitReason = "ended"
	// OutOfTime and OutOfMemory say that it used up what Limits allot.
	OutOfTime   ExitReason = "out of time"
	OutOfMemory ExitReason = "out of memory"
	// Killed says that it was ended before it had used up anything: the memory of
	// its machine, or container, was short, or its threads. It may not be at fault.
	Killed ExitReason = "killed"
	// Forbidden says that it tried what it must not.
	Forbidden ExitReason = "forbidden"
	// Crashed is every other end.
	Crashed ExitReason = "crashed"
)

// crashCode is the exit code of a program in Go that panics, or lacks memory.
const crashCode = 2

// ClassifyExit says how a process ended that has this state, wrote this to its standard
// error, and had these limits. Tell an end that the caller brought about before asking.
func ClassifyExit(state *os.ProcessState, complaint string, limits Limits) ExitReason {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return Crashed
	case threadLimitHit(complaint):
		return Killed
	case status.Signaled():
		// What is counted at the end, in ticks, is less than what the limit is
		// compared with.
		enough := limits.CPU * 3 / 4
		switch {
		case status.Signal() == syscall.SIGSYS:
			return Forbidden
		case status.Signal() == syscall.SIGXCPU, limits.CPU > 0 && state.UserTime()+state.SystemTime() >= enough:
			return OutOfTime
		case status.Signal() == syscall.SIGKILL:
			return Killed
		default:
			return Crashed
		}
	case status.ExitStatus() == crashCode && (strings.Contains(complaint, "out of memory") || strings.Contains(complaint, "cannot allocate memory")):
		return OutOfMemory
	case status.ExitStatus() == crashCode:
		return Crashed
	default:
		return Exited
	}
}

// threadLimitHit reports whether a process in Go could begin no thread, since those of its machine, or
// container, were too many.
func threadLimitHit(complaint string) bool {
	return strings.Contains(complaint, "failed to create new OS thread") || strings.Contains(complaint, "pthread_create failed")
}

// ErrNotIsolated is returned for a process that could not give up what it must not have:
// the kernel, or what runs the container, does not let it.
var ErrNotIsolated = errors.New("the process cannot be confined")

// StartError returns why a process did not begin its work, by its exit code; nil if it did.
func StartError(state *os.ProcessState, complaint string) error {
	switch state.ExitCode() {
	case ExitNotIsolated:
		return fmt.Errorf("%w: %s", ErrNotIsolated, strings.TrimSpace(complaint))
	case ExitNotStarted:
		return fmt.Errorf("the program cannot be started: %s", strings.TrimSpace(complaint))
	default:
		return nil
	}
}
