// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of the times in /proc/PID/stat, which is the same on every Linux that Go runs on.
const userHZ = 100

// CPUOf is the processor time that a process has used so far, user's and system's; zero when it cannot be told.
func CPUOf(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The fields follow the name, which stands in parentheses and may hold any character: see proc(5).
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0
	}
	var ticks int64
	for _, field := range [][]byte{fields[user], fields[system]} {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHZ
}

// Memory is what the process takes of the machine's memory now, and the most that it took, in bytes; zeros when it cannot
// be told.
func (p *Process) Memory() (now, peak int64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			now = kib << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			peak = kib << 10
		}
	}
	return now, peak
}

// MemoryParts are, of what the process takes now, what is its own and no file's, and all of it with what it shares with
// others divided between them, in bytes; zeros when they cannot be told.
func (p *Process) MemoryParts() (anonymous, proportional int64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID()))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "Anonymous: %d kB", &kib); err == nil {
			anonymous = kib << 10
		}
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &kib); err == nil {
			proportional = kib << 10
		}
	}
	return anonymous, proportional
}

// ForgetPeak has the most that the process took counted anew from what it takes now.
func (p *Process) ForgetPeak() error {
	// 5 resets the peak of resident memory and nothing else: see proc_pid_clear_refs(5).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0); err != nil {
		return fmt.Errorf("have the peak of %s counted anew: %w", p.Name, err)
	}
	return nil
}
