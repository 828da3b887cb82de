// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os/exec"
	"runtime"
	"strconv"
)

// The processors of the server and of its client while latencies are measured. On the same one they would measure how the
// system divides its time: a slice of 4 ms for each thread that is ready, on a kernel of 250 Hz.
const (
	ServerProcessor = 1
	ClientProcessor = 2
)

// OnProcessor returns the command that runs a program on one processor of the machine only, counted from 1, where there
// are so many and taskset(1) is installed. Zero is for any processor.
func OnProcessor(number int, path string, args []string) (string, []string) {
	taskset, err := exec.LookPath("taskset")
	if number == 0 || number > runtime.NumCPU() || ClientProcessor > runtime.NumCPU() || err != nil {
		return path, args
	}
	// taskset replaces itself by the command, so that the process is the command's own.
	return taskset, append([]string{"--cpu-list", strconv.Itoa(number - 1), path}, args...)
}
