// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testTimeout is how long a test waits. It is exceeded only if something is broken.
const testTimeout = 20 * time.Second

// harness runs shell scripts under a supervisor.
type harness struct {
	t       *testing.T
	dir     string
	super   *Supervisor
	reports chan string
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, dir: t.TempDir(), reports: make(chan string, 1000)}
	var err error
	h.super, err = New(Options{
		PIDDir:       h.path("pids"),
		LogDir:       h.path("log"),
		Group:        openGroup(t, h.path("group")),
		RestartDelay: time.Millisecond,
		Report:       func(name, message string) { h.reports <- name + " " + message },
	})
	if err != nil {
		t.Fatal(err)
	}
	force := make(chan struct{})
	close(force)
	// Most tests have already stopped all processes; what their scripts started is in the group.
	t.Cleanup(func() {
		h.super.Stop(force)
		if err := killGroup(h.super.options.Group.leader); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *harness) path(name string) string { return filepath.Join(h.dir, name) }

func (h *harness) start(name, script string, grace time.Duration) *Child {
	h.t.Helper()
	return h.super.Start(Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Grace: grace})
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(testTimeout)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		case <-tick.C:
		}
	}
}

// pid waits until the process has a pid other than old.
func (h *harness) pid(name string, old int) int {
	h.t.Helper()
	pid := 0
	eventually(h.t, "the pid of "+name, func() bool {
		data, err := os.ReadFile(filepath.Join(h.path("pids"), name))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			h.t.Fatalf("the pid file was read half written: %q", data)
		}
		return pid != old
	})
	return pid
}

func (h *harness) content(name string) string {
	data, err := os.ReadFile(h.path(name))
	if err != nil {
		return ""
	}
	return string(data)
}

func TestRestartsAfterSignals(t *testing.T) {
	tests := map[string]struct {
		reason string
		signal syscall.Signal
	}{
		"killed":     {"SIGKILL cannot be handled", syscall.SIGKILL},
		"terminated": {"another process's SIGTERM is not a request to stop", syscall.SIGTERM},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			child := h.start("p", "exec sleep 1000", time.Second)
			pid := 0
			for round := range 20 {
				pid = h.pid("p", pid)
				if err := syscall.Kill(pid, tc.signal); err != nil {
					t.Fatalf("round %d (%s): %v", round, tc.reason, err)
				}
			}
			h.pid("p", pid)
			if got := child.Exits(); got != 20 {
				t.Errorf("counted %d exits after 20 (%s)", got, tc.reason)
			}
		})
	}
}

func TestRestartsAfterACleanExit(t *testing.T) {
	h := newHarness(t)
	child := h.start("p", "echo once; exit 0", time.Second)
	eventually(t, "three runs", func() bool { return child.Exits() >= 3 })
	if got := strings.Count(h.content("log/p.log"), "once\n"); got < 3 {
		t.Errorf("the log contains %d of at least 3 runs", got)
	}
}

func TestMissingProgramIsRetried(t *testing.T) {
	h := newHarness(t)
	path := h.path("late")
	child := h.super.Start(Spec{Name: "p", Path: path, Grace: time.Second})
	eventually(t, "two attempts", func() bool { return child.Exits() >= 2 })
	if report := <-h.reports; !strings.Contains(report, "could not be started") {
		t.Errorf("reported %q, want the failed start", report)
	}
	if err := os.WriteFile(path+".tmp", []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
	h.pid("p", 0)
}

func TestStopsInReverseOrder(t *testing.T) {
	h := newHarness(t)
	order := h.path("order")
	for _, name := range []string{"first", "second", "third"} {
		h.start(name, `trap 'echo `+name+` >>`+order+`; kill $!; exit 0' TERM; touch `+h.path(name)+`; while :; do sleep 1000 & wait; done`, testTimeout)
	}
	for _, name := range []string{"first", "second", "third"} {
		eventually(t, name, func() bool { _, err := os.Stat(h.path(name)); return err == nil })
	}
	h.super.Stop(nil)
	if got, want := strings.Fields(h.content("order")), []string{"third", "second", "first"}; !slices.Equal(got, want) {
		t.Errorf("stopped in the order %v, want %v: dependencies stop last", got, want)
	}
	if entries, err := os.ReadDir(h.path("pids")); err != nil || len(entries) != 0 {
		t.Errorf("pid files still exist: %v, %v", entries, err)
	}
	if child := h.start("late", "exit 0", time.Second); child != nil {
		t.Error("a process was started after Stop and would run forever")
	}
}

func TestStopKillsHangingProcesses(t *testing.T) {
	const deaf = `trap '' TERM; touch ready; while :; do sleep 1000 & wait; done`
	closed := make(chan struct{})
	close(closed)
	tests := map[string]struct {
		reason string
		grace  time.Duration
		force  chan struct{}
	}{
		"after its grace period": {"a hanging process must not delay the others", time.Millisecond, nil},
		"on force":               {"a second Ctrl-C skips the grace period", time.Hour, closed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.start("p", strings.ReplaceAll(deaf, "touch ready", "touch "+h.path("ready")), tc.grace)
			eventually(t, "the trap", func() bool { _, err := os.Stat(h.path("ready")); return err == nil })
			pid := h.pid("p", 0)
			h.super.Stop(tc.force)
			if syscall.Kill(pid, 0) == nil {
				t.Errorf("process %d still exists: %s", pid, tc.reason)
			}
		})
	}
}

func TestStopEndsACrashLoop(t *testing.T) {
	h := newHarness(t)
	h.super.options.RestartDelay = time.Hour
	child := h.start("p", "exit 1", time.Second)
	eventually(t, "the first exit", func() bool { return child.Exits() == 1 })
	h.super.Stop(nil)
	select {
	case <-child.done:
	default:
		t.Error("Stop returned before the last restart was cancelled")
	}
}

func TestPreviousLogIsKept(t *testing.T) {
	h := newHarness(t)
	if err := os.WriteFile(h.path("log/p.log"), []byte("yesterday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.super, err = New(h.super.options); err != nil {
		t.Fatal(err)
	}
	h.start("p", "echo today; exec sleep 1000", time.Second)
	eventually(t, "the new log", func() bool { return h.content("log/p.log") == "today\n" })
	if got := h.content("log/p.log.1"); got != "yesterday\n" {
		t.Errorf("the previous run's log contains %q", got)
	}
}

func TestOnceDoesNotRestart(t *testing.T) {
	h := newHarness(t)
	h.super.options.Once = true
	child := h.start("p", "echo broken; exit 1", time.Second)
	child.Ready = func(context.Context) error { return errors.New("not yet") }
	err := child.WaitReady(t.Context())
	if err == nil || !strings.Contains(err.Error(), "broken") || child.Exits() != 1 {
		t.Errorf("%d exits, error %v, want the process's output", child.Exits(), err)
	}
	child.Stop(nil)
}

func TestWaitReady(t *testing.T) {
	tests := map[string]struct {
		reason, script string
		ready          error
		want           string
	}{
		"ready":        {"the probe succeeds", "exec sleep 1000", nil, ""},
		"keeps ending": {"the error contains the log", "echo no such flag; exit 2", errors.New("refused"), "no such flag"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			child := h.super.Start(Spec{
				Name: "p", Path: "/bin/sh", Args: []string{"-c", tc.script}, Grace: time.Second,
				Ready: func(context.Context) error { return tc.ready },
			})
			err := child.WaitReady(t.Context())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}
