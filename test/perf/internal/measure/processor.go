// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os/exec"
	"runtime"
	"strconv"
)

// The CPUs on which the server and its client run when latency is measured. If they shared one, the scheduler would
// dominate: it gives each ready thread a slice of 4 ms on a kernel with 250 Hz.
const (
	ServerProcessor = 1
	ClientProcessor = 2
)

// OnProcessor returns a command that runs a program pinned to one CPU, numbered from 1, if the machine has that many
// and taskset(1) is installed. Zero does not pin it.
func OnProcessor(number int, path string, args []string) (string, []string) {
	taskset, err := exec.LookPath("taskset")
	if number == 0 || number > runtime.NumCPU() || ClientProcessor > runtime.NumCPU() || err != nil {
		return path, args
	}
	// taskset executes the command in the same process.
	return taskset, append([]string{"--cpu-list", strconv.Itoa(number - 1), path}, args...)
}
