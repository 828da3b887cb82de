// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolate runs decoders of untrusted files in a separate process. Such a process has no environment, is in its
// own process group, which is killed as a whole, and ends with its parent. On Linux it drops all that it does not need
// before it sees the first untrusted byte: memory, processor time and files beyond its limits, and all but a few system
// calls. That needs neither privileges nor namespaces.
//
// The process is this program again, with arguments of the caller's choice. It calls Enter and then decodes, or it
// calls Exec and becomes another program. The calling process must have no other task.
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
	// Data limits the writable memory, and AddressSpace all memory of a program that Start starts, in bytes; zero is
	// unlimited. Go programs reserve addresses that they do not use: set Data for them.
	Data, AddressSpace uint64
	// CPU limits the processor time, in full seconds.
	CPU time.Duration
	// Files limits the open files.
	Files uint64
	// Output limits the file that Start lets a program write, in bytes; zero forbids writing.
	Output uint64
}

// Exit codes of a process that did not start to decode. A crashed Go program has 2.
const (
	// ExitNotIsolated means that the process could not drop its rights.
	ExitNotIsolated = 70
	// ExitNotStarted means that Exec did not find the program, or may not run it.
	ExitNotStarted = 71
)

// killTimeout is how long to wait for the open files of a killed process.
const killTimeout = 5 * time.Second

// Self returns a command that starts this program with these arguments after its name. It is killed with its group when
// the context ends. On Linux it is also killed when the thread that started it ends: hold that thread by
// runtime.LockOSThread until Wait returns.
func Self(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self()) //nolint:gosec // it is this program
	cmd.Args = append([]string{"herald"}, args...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.WaitDelay = killTimeout
	isolate(cmd)
	return cmd
}

// ExitReason classifies the end of a process.
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
	// Forbidden means that it made a forbidden call.
	Forbidden ExitReason = "forbidden"
	// Crashed is every other end.
	Crashed ExitReason = "crashed"
)

// crashCode is the exit code of a Go program that panics or runs out of memory.
const crashCode = 2

// ClassifyExit classifies the end of a process by its state, its standard error and its limits. The caller must first
// exclude an end that it caused itself.
func ClassifyExit(state *os.ProcessState, complaint string, limits Limits) ExitReason {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return Crashed
	case threadLimitHit(complaint):
		return Killed
	case status.Signaled():
		// The time at the end, counted in ticks, is less than the time that the kernel compares with the limit.
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

// threadLimitHit reports whether the process failed to start a thread because its machine or container has too many.
func threadLimitHit(complaint string) bool {
	return strings.Contains(complaint, "failed to create new OS thread") || strings.Contains(complaint, "pthread_create failed")
}

// ErrNotIsolated is returned for a process that could not drop its rights, because the kernel or the container runtime
// does not permit it.
var ErrNotIsolated = errors.New("the process cannot be confined")

// StartError returns why a process did not start its work, by its exit code; nil if it did.
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
