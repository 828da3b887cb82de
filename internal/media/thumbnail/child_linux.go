// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package thumbnail

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate makes the child the leader of a process group, which is killed as a
// whole, and makes it die with the thread that starts it.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

const (
	// maxMemory bounds the address space of the child, in bytes: its libraries
	// have some 300 MiB of it, and decoding 4K HEVC with ten bits takes as much.
	maxMemory = 1 << 30
	// maxCPU bounds its processor time, in seconds.
	maxCPU = 60
)

// restrict limits what the child may use: it writes no files and leaves no core. A
// child that has already ended needs no limits.
func restrict(pid int) error {
	for resource, limit := range map[int]uint64{unix.RLIMIT_AS: maxMemory, unix.RLIMIT_CPU: maxCPU, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0} {
		err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: limit, Max: limit}, nil)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cannot limit what ffmpeg may use: %w", err)
		}
	}
	return nil
}
