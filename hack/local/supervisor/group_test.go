// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentVariable makes the test binary act as a parent: it starts a child, prints the child's pid and waits to be
// killed.
const parentVariable = "HERALD_TEST_PARENT"

func TestMain(m *testing.M) {
	if path := os.Getenv(parentVariable); path != "" {
		playParent(path)
	}
	os.Exit(m.Run())
}

func playParent(path string) {
	group, err := OpenGroup(context.Background(), path)
	child := exec.Command("sleep", "1000")
	if err == nil {
		err = group.Start(child)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	<-time.After(time.Hour)
}

func openGroup(t *testing.T, path string) *Group {
	t.Helper()
	group, err := OpenGroup(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// TestChildrenDieWithTheirParent kills a parent. If the system does not kill its child as well, the next OpenGroup
// does.
func TestChildrenDieWithTheirParent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "group")
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+path)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Fatalf("the parent printed %q, %v", line, err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // open only for its lock
	childEnded := func() bool { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }
	if childEnded() {
		t.Fatal("the child does not have the lock")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if runtime.GOOS == "linux" {
		eventually(t, "the end of the child", childEnded)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	openGroup(t, path)
}

func TestOpenGroupKillsLeftovers(t *testing.T) {
	tests := map[string]struct {
		reason string
		// holds makes the process inherit the lock, as the processes of an earlier run do; text is the file's content.
		holds bool
		text  func(pid int) string
		runs  bool
		fails bool
	}{
		"a leftover": {
			reason: "the process would occupy our ports and files",
			holds:  true, text: strconv.Itoa,
		},
		"a reused pid": {
			reason: "a process without the lock is not from an earlier run",
			text:   strconv.Itoa, runs: true,
		},
		"not a pid": {
			reason: "a leftover that cannot be killed is reported, because it would disturb the run",
			holds:  true, text: func(int) string { return "x" }, runs: true, fails: true,
		},
		"pid 1": {
			reason: "its group contains all processes",
			holds:  true, text: func(int) string { return "1" }, runs: true, fails: true,
		},
		"a damaged file": {
			reason: "a file without a lock owner does not block the next run",
			text:   func(int) string { return "x" }, runs: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "group")
			file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			leftover := exec.CommandContext(t.Context(), "sleep", "1000")
			leftover.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if tc.holds {
				leftover.ExtraFiles = []*os.File{file}
				if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
					t.Fatal(err)
				}
			}
			if err := leftover.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteString(tc.text(leftover.Process.Pid)); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenGroup(t.Context(), path); (err != nil) != tc.fails || err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want an error with the file's name: %v; %s", err, tc.fails, tc.reason)
			}
			// The first fatal signal determines the exit status.
			_ = leftover.Process.Signal(syscall.SIGTERM)
			_ = leftover.Wait()
			if status, ok := leftover.ProcessState.Sys().(syscall.WaitStatus); !ok || (status.Signal() == syscall.SIGTERM) != tc.runs {
				t.Errorf("the process still runs: %v, want %v: %s", !tc.runs, tc.runs, tc.reason)
			}
		})
	}
}

// TestOpenGroupWaitsForTerminatingProcesses covers a process whose id has not been written yet. It dies with its
// parent, but occupies ports until it does.
func TestOpenGroupWaitsForTerminatingProcesses(t *testing.T) {
	first := openGroup(t, filepath.Join(t.TempDir(), "group"))
	command := exec.CommandContext(t.Context(), "sleep", "0.1")
	if err := first.Start(command); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.file.Truncate(0), first.file.Close()); err != nil {
		t.Fatal(err)
	}
	openGroup(t, first.file.Name())
	if err := command.Wait(); err != nil {
		t.Errorf("the process was killed during its shutdown: %v", err)
	}
}

// TestGroupIsRecreatedAfterItsLastProcess covers the system reusing a process group id: without a new group, other programs'
// processes would be killed.
func TestGroupIsRecreatedAfterItsLastProcess(t *testing.T) {
	group := openGroup(t, filepath.Join(t.TempDir(), "group"))
	start := func() *exec.Cmd {
		command := exec.CommandContext(t.Context(), "sleep", "1000")
		if err := group.Start(command); err != nil {
			t.Fatal(err)
		}
		return command
	}
	groupOf := func(command *exec.Cmd) int {
		id, err := syscall.Getpgid(command.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first, second := start(), start()
	if leader := groupOf(second); leader != groupOf(first) || leader == syscall.Getpgrp() {
		t.Errorf("the children are in the groups %d and %d, want one group of their own", groupOf(first), leader)
	}
	for _, command := range []*exec.Cmd{first, second} {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	third := start()
	data, err := os.ReadFile(group.file.Name())
	if err != nil || strings.TrimSpace(string(data)) != strconv.Itoa(groupOf(third)) || groupOf(third) == first.Process.Pid {
		t.Errorf("the file contains the group %q (%v), the child is in %d, the previous group was %d", data, err, groupOf(third), first.Process.Pid)
	}
	_ = third.Process.Kill()
	_ = third.Wait()
}
