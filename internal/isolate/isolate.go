// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolate runs decoders of untrusted files in a separate process. Such a process has no environment, is in its
// own process group, which is killed as a whole, and dies with its parent. On Linux it gives up everything it does not
// need before it sees the first untrusted byte: memory, CPU time and files beyond its limits, and all but a few system
// calls. That takes neither privileges nor namespaces.
//
// The process runs this same program, with arguments chosen by the caller. It either calls Enter and then decodes, or
// calls Exec and becomes another program. It must do nothing else.
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

// Limits are the resources that a process may use.
type Limits struct {
	// Data limits the writable memory, and AddressSpace all memory of a program that Start starts, in bytes. Zero means
	// unlimited. Go programs reserve addresses that they do not use, so set Data for them.
	Data, AddressSpace uint64
	// CPU limits the CPU time, in whole seconds.
	CPU time.Duration
	// Files limits the number of open files.
	Files uint64
	// Output limits the size of the file that Start lets a program write, in bytes. Zero forbids writing.
	Output uint64
}

// Exit codes of a process that did not start to decode. A Go program that crashes exits with 2.
const (
	// ExitNotIsolated means that the process could not drop its privileges.
	ExitNotIsolated = 70
	// ExitNotStarted means that Exec did not find the program or was not allowed to run it.
	ExitNotStarted = 71
)

const killTimeout = 5 * time.Second

// Self returns a command that starts this program with args. It is killed with its process group when ctx is done and,
// on Linux, when the thread that started it exits, so hold that thread with runtime.LockOSThread until Wait returns.
func Self(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self()) //nolint:gosec // it is this program
	cmd.Args = append([]string{"herald"}, args...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.WaitDelay = killTimeout
	isolate(cmd)
	return cmd
}

// ExitReason classifies how a process ended.
type ExitReason string

// The values of ExitReason.
const (
	// Exited is a normal exit, with any exit code.
	Exited ExitReason = "ended"
	// OutOfTime and OutOfMemory mean that the process exhausted its Limits.
	OutOfTime   ExitReason = "out of time"
	OutOfMemory ExitReason = "out of memory"
	// Killed means that the process was killed before it exhausted its limits: its machine or container ran out of
	// memory or threads. The input may not be at fault.
	Killed ExitReason = "killed"
	// Forbidden means that the process made a forbidden system call.
	Forbidden ExitReason = "forbidden"
	// Crashed covers everything else.
	Crashed ExitReason = "crashed"
)

// crashCode is the exit code of a Go program that panics or runs out of memory.
const crashCode = 2

// ClassifyExit classifies how a process ended, given its state, its standard error and its limits. The caller must
// first rule out that it killed the process itself.
func ClassifyExit(state *os.ProcessState, stderr string, limits Limits) ExitReason {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return Crashed
	case threadLimitHit(stderr):
		return Killed
	case status.Signaled():
		// The final CPU time is counted in ticks, and is less than the time that the kernel compares with the limit.
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
	case status.ExitStatus() == crashCode && (strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory")):
		return OutOfMemory
	case status.ExitStatus() == crashCode:
		return Crashed
	default:
		return Exited
	}
}

// threadLimitHit reports whether the process failed to start a thread because its machine or container has too many.
func threadLimitHit(stderr string) bool {
	return strings.Contains(stderr, "failed to create new OS thread") || strings.Contains(stderr, "pthread_create failed")
}

// ErrNotIsolated means that the kernel or the container runtime does not let a process give up its privileges.
var ErrNotIsolated = errors.New("the process cannot be confined")

// StartError returns the reason a process did not start its work, judging by its exit code, or nil if it did.
func StartError(state *os.ProcessState, stderr string) error {
	switch state.ExitCode() {
	case ExitNotIsolated:
		return fmt.Errorf("%w: %s", ErrNotIsolated, strings.TrimSpace(stderr))
	case ExitNotStarted:
		return fmt.Errorf("the program cannot be started: %s", strings.TrimSpace(stderr))
	default:
		return nil
	}
}
