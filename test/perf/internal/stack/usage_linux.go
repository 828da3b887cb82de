// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// userHZ is the unit of the times in /proc/PID/stat, which is the same on every Linux that Go runs on.
const userHZ = 100

// CPU is the processor time that the process has used so far, user's and system's; zero when it cannot be told.
func (p *Process) CPU() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
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
