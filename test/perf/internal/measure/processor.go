// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os/exec"
	"runtime"
	"strconv"
)

// The processors of what serves and of what asks while latencies are measured. On one and the same they would measure
// how the system divides its time: a slice of 4 ms for each thread that is ready, on a kernel of 250 Hz.
const (
	ServerProcessor = 1
	ClientProcessor = 2
)

// OnProcessor has a command, which is not started yet, run on one processor of the machine only, counted from 1, where
// there are so many and taskset(1) is installed. Zero leaves it free.
func OnProcessor(command *exec.Cmd, number int) {
	if number == 0 || number > runtime.NumCPU() || ClientProcessor > runtime.NumCPU() {
		return
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return
	}
	// taskset replaces itself by the command, so that the process is the command's own.
	command.Args = append([]string{taskset, "--cpu-list", strconv.Itoa(number - 1), command.Path}, command.Args[1:]...)
	command.Path = taskset
}
