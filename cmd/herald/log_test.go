// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/internal/brake"
)

const managerFile = "apiVersion: config.herald.dev/v1alpha1\nkind: ManagerConfiguration\n"

// logLines takes a log that several goroutines write.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tellingClock tells each time that its ticker is waited for.
type tellingClock struct {
	clock.WithTicker
	waits chan struct{}
}

func (c tellingClock) NewTicker(d time.Duration) clock.Ticker {
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
	// Kubernetes changes where a link points to.
	write := func(version, text string) {
		t.Helper()
		data := filepath.Join(folder, version)
		if err := os.WriteFile(data, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(data, path+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("0", managerFile)
	var out logLines
	log, err := (&commonFlags{logFormat: "json", logLevel: slog.LevelWarn}).newLog(&out)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fake := clocktesting.NewFakeClock(time.Now())
	stop := &brake.Brake{}
	var following sync.WaitGroup
	waits := make(chan struct{})
	following.Go(func() {
		live := &file[*configv1alpha1.ManagerConfiguration]{path: path, from: config.Manager, take: liveManager(log, stop), log: log.Logger}
		live.follow(ctx, tellingClock{fake, waits})
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
		{"a file without a level leaves it to the flag", managerFile, slog.LevelWarn, false, ""},
		{"somebody looks for trouble", managerFile + "log: {level: debug}\n", slog.LevelDebug, false, `"is":"DEBUG"`},
		{"a mistake changes nothing, and is told", managerFile + "log: {level: loud}\n", slog.LevelDebug, false, "log.level"},
		{"half of a file is a mistake too", managerFile[:20], slog.LevelDebug, false, "cannot be read again"},
		{"enough was seen", managerFile + "log: {level: error}\n", slog.LevelError, false, `"is":"ERROR"`},
		{"without a level, that of the flag holds again", managerFile, slog.LevelWarn, false, `"is":"WARN"`},
		{"somebody pulls the brake", managerFile + "suspend: true\n", slog.LevelWarn, true, "nothing is published"},
		{"a mistake does not release it", managerFile + "suspend: 1\n", slog.LevelWarn, true, "write true or false"},
		{"it is released", managerFile, slog.LevelWarn, false, "no longer suspended"},
		{"a change that is not live is told", managerFile + "releaseName: other\n", slog.LevelWarn, false, `"fields":"releaseName"`},
		{"it is told once", managerFile + "# and why\nreleaseName: other\n", slog.LevelWarn, false, ""},
		{"it was taken back", managerFile, slog.LevelWarn, false, ""},
	} {
		before := len(out.String())
		write(string(rune('a'+i)), tc.text)
		fake.Step(rereadEvery)
		<-waits // for the next tick: the look is over
		if got := log.level.Level(); got != tc.level || stop.On() != tc.suspended {
			t.Errorf("%s: the level is %s, and suspended is %t", tc.reason, got, stop.On())
		}
		said := out.String()[before:]
		if !strings.Contains(said, tc.says) || (tc.says == "") != (said == "") || strings.Count(said, "\n") > 1 {
			t.Errorf("%s: the log says %q", tc.reason, said)
		}
		if log.Enabled(ctx, slog.LevelDebug) != (tc.level == slog.LevelDebug) {
			t.Errorf("%s: lines of this level are written wrongly", tc.reason)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	before := len(out.String())
	for range 3 {
		fake.Step(rereadEvery)
		<-waits
	}
	if got := out.String()[before:]; strings.Count(got, "\n") != 1 || log.level.Level() != slog.LevelWarn {
		t.Errorf("a file that is away for a while is told once: %q", got)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}
