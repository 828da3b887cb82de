// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes cannot ask these systems to end the children with their parent; the next run removes what is left.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// CommandLine returns the program and arguments of a running process, cut at spaces: these systems show no better. A
// process that is gone is an error.
func CommandLine(pid int) ([]string, error) {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return strings.Fields(string(out)), nil
}

// Running reports whether the process exists and may still hold files, locks and ports. One that only waits to be
// waited for holds none.
func Running(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	state := strings.TrimSpace(string(out))
	return err == nil && state != "" && !strings.HasPrefix(state, "Z")
}

// Name returns the short name of a running process, or "".
func Name(pid int) string {
	out, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return filepath.Base(strings.TrimSpace(string(out)))
}
