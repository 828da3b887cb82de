// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

// CPU returns a process's CPU time so far, in user and system mode, or zero if the system does not report it.
func CPU(pid int) time.Duration {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, err := process.Stat()
	if err != nil {
		return 0
	}
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// Memory returns a process's resident memory and its peak, in bytes, or zeros if the system does not report them.
func Memory(pid int) (now, peak int64) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, 0
	}
	return int64(status.VmRSS), int64(status.VmHWM)
}

// ForgetPeak resets a process's peak memory to the current value. Only Linux can do that.
func ForgetPeak(pid int) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	// 5 resets the peak of resident memory and nothing else: see proc_pid_clear_refs(5).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of memory: %w", err)
	}
	return nil
}

// OpenFiles returns the number of files and sockets that a process has open, or zero if the system does not report it.
func OpenFiles(pid int) int {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	files, err := process.FileDescriptorsLen()
	if err != nil {
		return 0
	}
	return files
}
