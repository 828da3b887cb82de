// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/herald-social/herald/hack/local/process"
)

// leftoverPoll is how often a killed leftover is looked at until it is gone.
const leftoverPoll = 10 * time.Millisecond

// EndLeftovers kills what a supervisor that was killed left running, and returns the names. A process is a leftover
// only when its pid stands in pidDir and ours says that its command line is one of ours: the pid alone may have been
// given to a stranger since. Whoever calls must hold the lock of the run.
func EndLeftovers(ctx context.Context, pidDir string, ours func(commandLine []string) bool) ([]string, error) {
	entries, err := os.ReadDir(pidDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		path := filepath.Join(pidDir, entry.Name())
		ended, err := endLeftover(ctx, path, ours)
		if ended {
			found = append(found, entry.Name())
		}
		if err != nil {
			return found, fmt.Errorf("end the %s of an earlier run: %w", entry.Name(), err)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return found, err
		}
	}
	return found, nil
}

// endLeftover ends the process that a pid file names, if it is ours, and reports whether there was one. A process that
// is ending already, as those are whose parent was killed a moment ago, shows no command line any more and is waited
// for: it may still hold ports and locks.
func endLeftover(ctx context.Context, pidFile string, ours func([]string) bool) (bool, error) {
	pid, ok := readPID(pidFile)
	if !ok || !process.Running(pid) {
		return false, nil
	}
	commandLine, gone := process.CommandLine(pid)
	if gone != nil {
		return false, nil
	}
	if len(commandLine) > 0 {
		if !ours(commandLine) {
			return false, nil
		}
		if err := process.SignalGroup(pid, syscall.SIGKILL); err != nil {
			return true, err
		}
	}
	poll := time.NewTicker(leftoverPoll)
	defer poll.Stop()
	for process.Running(pid) {
		select {
		case <-ctx.Done():
			return true, fmt.Errorf("process %d does not end: %w", pid, ctx.Err())
		case <-poll.C:
		}
	}
	return true, nil
}

func readPID(path string) (int, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid, err == nil && pid > 1
}
