// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/herald-social/herald/hack/local/process"
)

func TestEndLeftovers(t *testing.T) {
	tests := map[string]struct {
		reason  string
		pidFile func(pid int) string
		ours    bool
		found   []string
		runs    bool
	}{
		"ours": {
			reason:  "a process of a killed run would hold our ports and files",
			pidFile: strconv.Itoa, ours: true, found: []string{"p"},
		},
		"a stranger with our pid": {
			reason:  "pids are given again; the command line tells whose it is now",
			pidFile: strconv.Itoa, ours: false, runs: true,
		},
		"a pid that is gone": {
			reason:  "the file of a process that ended is of no use to anybody",
			pidFile: func(int) string { return "2147483646" }, ours: true, runs: true,
		},
		"not a pid": {
			reason:  "a damaged file must not stop the next run",
			pidFile: func(int) string { return "x" }, ours: true, runs: true,
		},
		"the first process of all": {
			reason:  "its group is everything; no file may make us signal that",
			pidFile: func(int) string { return "1" }, ours: true, runs: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "sleep", "1000")
			if err := process.NewSpawner().Start(command); err != nil {
				t.Fatal(err)
			}
			reaped := make(chan struct{})
			go func() { _ = command.Wait(); close(reaped) }()
			t.Cleanup(func() { _ = command.Process.Kill(); <-reaped })

			dir := t.TempDir()
			file := filepath.Join(dir, "p")
			if err := os.WriteFile(file, []byte(tc.pidFile(command.Process.Pid)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			found, err := EndLeftovers(t.Context(), dir, func(line []string) bool {
				return tc.ours && strings.Join(line, " ") == "sleep 1000"
			})
			if err != nil || !slices.Equal(found, tc.found) {
				t.Errorf("found %v, %v, want %v: %s", found, err, tc.found, tc.reason)
			}
			if process.Running(command.Process.Pid) != tc.runs {
				t.Errorf("the process runs: %v, want %v: %s", !tc.runs, tc.runs, tc.reason)
			}
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("the pid file is left (%v): %s", err, tc.reason)
			}
		})
	}
}

func TestEndLeftoversOfTheFirstRun(t *testing.T) {
	found, err := EndLeftovers(t.Context(), filepath.Join(t.TempDir(), "none"), func([]string) bool { return true })
	if err != nil || len(found) != 0 {
		t.Errorf("found %v, %v where there is no folder yet", found, err)
	}
}
