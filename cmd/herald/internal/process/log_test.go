// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/test/logtest"
	"github.com/herald-social/herald/test/must"
)

const managerFile = "apiVersion: config.herald.dev/v1alpha1\nkind: ManagerConfiguration\n"

// signalingClock signals each wait for its ticker.
type signalingClock struct {
	clock.WithTicker
	waits chan struct{}
}

func (c signalingClock) NewTicker(d time.Duration) clock.Ticker {
	return tellingTicker{c.WithTicker.NewTicker(d), c.waits}
}

type tellingTicker struct {
	clock.Ticker
	waits chan struct{}
}

func (t tellingTicker) C() <-chan time.Time {
	t.waits <- struct{}{}
	return t.Ticker.C()
}

// TestLive changes the file of a running process, as Kubernetes does with a ConfigMap.
func TestLive(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "config.yaml")
	// Kubernetes changes the target of a link.
	write := func(version, text string) {
		t.Helper()
		data := filepath.Join(folder, version)
		must.Succeed(t, os.WriteFile(data, []byte(text), 0o600))
		must.Succeed(t, os.Symlink(data, path+".new"))
		must.Succeed(t, os.Rename(path+".new", path))
	}
	write("0", managerFile)
	var out logtest.Log
	log, err := (&Flags{logFormat: "json", logLevel: slog.LevelWarn}).newLog(&out)
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	fake := clocktesting.NewFakeClock(time.Now())
	stop := &installation.Suspension{}
	var following sync.WaitGroup
	waits := make(chan struct{})
	following.Go(func() {
		live := &configWatcher[*configv1alpha1.ManagerConfiguration]{path: path, load: config.Manager, apply: reloadManager(log, stop), log: log.Logger}
		live.watch(ctx, signalingClock{fake, waits})
	})
	defer following.Wait()
	defer cancel()
	<-waits
	for i, tc := range []struct {
		reason, text string
		level        slog.Level
		suspended    bool
		says         string
	}{
		{"a file without a level uses the flag", managerFile, slog.LevelWarn, false, ""},
		{"an operator enables debug logs", managerFile + "log: {level: debug}\n", slog.LevelDebug, false, `"is":"DEBUG"`},
		{"an invalid change is reported, without effect", managerFile + "log: {level: loud}\n", slog.LevelDebug, false, "log.level"},
		{"half of a file is a mistake too", managerFile[:20], slog.LevelDebug, false, "cannot be reloaded"},
		{"enough was seen", managerFile + "log: {level: error}\n", slog.LevelError, false, `"is":"ERROR"`},
		{"without a level, the flag's applies again", managerFile, slog.LevelWarn, false, `"is":"WARN"`},
		{"an operator suspends publishing", managerFile + "suspend: true\n", slog.LevelWarn, true, "nothing is published"},
		{"a mistake does not end the suspension", managerFile + "suspend: 1\n", slog.LevelWarn, true, "write true or false"},
		{"the suspension ends", managerFile, slog.LevelWarn, false, "no longer suspended"},
		{"a change that needs a restart is reported", managerFile + "releaseName: other\n", slog.LevelWarn, false, `"fields":"releaseName"`},
		{"the change is reported once", managerFile + "# and why\nreleaseName: other\n", slog.LevelWarn, false, ""},
		{"the file was reverted", managerFile, slog.LevelWarn, false, ""},
	} {
		before := len(out.String())
		write(string(rune('a'+i)), tc.text)
		fake.Step(rereadEvery)
		<-waits // for the next tick: the check is done
		if got := log.level.Level(); got != tc.level || stop.On() != tc.suspended {
			t.Errorf("%s: the level is %s, and suspended is %t", tc.reason, got, stop.On())
		}
		logged := out.String()[before:]
		if !strings.Contains(logged, tc.says) || (tc.says == "") != (logged == "") || strings.Count(logged, "\n") > 1 {
			t.Errorf("%s: the log contains %q", tc.reason, logged)
		}
		if log.Enabled(ctx, slog.LevelDebug) != (tc.level == slog.LevelDebug) {
			t.Errorf("%s: lines of this level are written wrongly", tc.reason)
		}
	}
	must.Succeed(t, os.Remove(path))
	before := len(out.String())
	for range 3 {
		fake.Step(rereadEvery)
		<-waits
	}
	if got := out.String()[before:]; strings.Count(got, "\n") != 1 || log.level.Level() != slog.LevelWarn {
		t.Errorf("a temporarily missing file must be logged once: %q", got)
	}
	if _, err := out.Lines(); err != nil {
		t.Error(err)
	}
}

// TestNewLog writes lines as the parts of a process do.
func TestNewLog(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		level  slog.Level
		write  func(log *slog.Logger)
		want   []logtest.Line
	}{
		"a duration": {
			"1500000000 has no unit", slog.LevelInfo, func(log *slog.Logger) { log.Info("Stopping", "delay", 1500*time.Millisecond) },
			[]logtest.Line{{"level": "INFO", "msg": "Stopping", "delay": "1.5s"}},
		},
		"a duration of a logger": {
			"loggers with values format durations in the same way", slog.LevelInfo, func(log *slog.Logger) { log.With("every", time.Hour).Info("Sweeping") },
			[]logtest.Line{{"level": "INFO", "msg": "Sweeping", "every": "1h0m0s"}},
		},
		"a duration of a controller": {
			"controllers log by logr", slog.LevelInfo, func(log *slog.Logger) {
				logr.FromSlogHandler(log.Handler()).WithValues("late", 5*time.Minute).Info("waits")
			},
			[]logtest.Line{{"level": "INFO", "msg": "waits", "late": "5m0s"}},
		},
		"a server of the library starts": {
			"the line is a detail for debug logs", slog.LevelInfo, func(log *slog.Logger) {
				logr.FromSlogHandler(log.Handler()).WithName("controller-runtime").WithName("metrics").Info("Starting metrics server")
			}, nil,
		},
		"the process starts, with debug logs": {
			"debug shows all", slog.LevelDebug, func(log *slog.Logger) {
				logr.FromSlogHandler(log.Handler()).WithName("controller-runtime").WithName("metrics").Info("Starting metrics server")
			}, []logtest.Line{{"level": "DEBUG", "msg": "Starting metrics server", "logger": "controller-runtime/metrics"}},
		},
		"the process fails": {
			"errors are logged at every level", slog.LevelInfo, func(log *slog.Logger) {
				logr.FromSlogHandler(log.Handler()).WithName("controller-runtime").Error(errors.New("broken"), "cannot serve")
			}, []logtest.Line{{"level": "ERROR", "msg": "cannot serve", "logger": "controller-runtime", "err": "broken"}},
		},
	} {
		var out logtest.Log
		log, err := (&Flags{logFormat: "json", logLevel: tc.level}).newLog(&out)
		must.Succeed(t, err)
		tc.write(log.Logger)
		lines, err := out.Lines()
		for _, line := range lines {
			delete(line, slog.TimeKey)
		}
		if diff := cmp.Diff(tc.want, lines); diff != "" || err != nil {
			t.Errorf("%s: %s: %v\n%s", name, tc.reason, err, diff)
		}
	}
}
