// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package isolate

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// self returns the path of the running program, which works even if its file was replaced.
func self() string { return "/proc/self/exe" }

// isolate makes the child the leader of a process group, which is killed as a whole, and ties its life to the thread
// that starts it.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// Enter confines this process permanently. It keeps its open files, and can only allocate, compute, read, write and
// exit.
func Enter(limits Limits) error {
	if raceEnabled {
		return nil
	}
	program, err := decoder(os.Getpid()).program()
	if err != nil {
		return err
	}
	preferOOMKill()
	if err := limits.set(); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err = install(program, unix.SECCOMP_FILTER_FLAG_TSYNC)
	return err
}

// Exec confines this process and replaces it with a program. The program does not inherit the environment; it gets this
// process's files 0, 1 and 2, and a listener at the other end of the socket from Start. Exec returns, with an exit
// code, only if that fails.
func Exec(limits Limits, path string, args []string) (code int, err error) {
	if err := unix.Access(path, unix.X_OK); err != nil {
		return ExitNotStarted, fmt.Errorf("%s: %w", path, err)
	}
	filter, err := program(os.Getpid(), controlFile).program()
	if err != nil {
		return ExitNotIsolated, err
	}
	argv := append([]string{path}, args...)
	unix.CloseOnExec(controlFile)
	// Go's own files are closed anyway; this closes inherited ones, where the kernel supports it (Linux 5.11).
	_ = unix.CloseRange(controlFile, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	preferOOMKill()
	// Start sets the memory limit after the exec, because the race detector in tests needs a lot.
	limits.Data = 0
	if err := limits.set(); err != nil {
		return ExitNotIsolated, err
	}
	// The thread with the filter becomes the program, and all others exit.
	runtime.LockOSThread()
	listener, err := install(filter, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return ExitNotIsolated, err
	}
	unix.CloseOnExec(listener)
	if err := unix.Sendmsg(controlFile, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return ExitNotIsolated, fmt.Errorf("cannot hand over the listener: %w", err)
	}
	return ExitNotStarted, fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, nil)) //nolint:gosec // the operator names the program
}

// preferOOMKill makes this process the first victim when memory runs short, because its parent serves all users. If
// that fails, the limits still apply.
func preferOOMKill() { _ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }

// set applies the limits to this process. It also limits the size of a written file and disables core dumps.
func (l Limits) set() error {
	wanted := map[int]uint64{
		unix.RLIMIT_DATA: l.Data, unix.RLIMIT_NOFILE: l.Files,
		unix.RLIMIT_CPU: uint64(l.CPU / time.Second), //nolint:gosec // constants of this program
	}
	var problems []error
	for resource, limit := range wanted {
		if limit != 0 {
			problems = append(problems, unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}))
		}
	}
	problems = append(problems,
		unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: l.Output, Max: l.Output}),
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("cannot set limits: %w", err)
	}
	return nil
}
