// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package workspace

import (
	"fmt"
	"os/exec"
	"strings"
)

// PortOwner describes the process that listens on a port, or returns "" when that cannot be told.
func PortOwner(port int) string {
	out, err := exec.Command("lsof", "-nP", fmt.Sprintf("-iTCP:%d", port), "-sTCP:LISTEN", "-Fpc").Output()
	if err != nil {
		return ""
	}
	var pid, command string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "p"); ok && pid == "" {
			pid = rest
		}
		if rest, ok := strings.CutPrefix(line, "c"); ok && command == "" {
			command = rest
		}
	}
	if pid == "" {
		return ""
	}
	return fmt.Sprintf("process %s: %s", pid, shorten(command))
}
