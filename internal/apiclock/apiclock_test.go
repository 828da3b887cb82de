// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// noon is what the API's clock shows first: 250 ms past, so that Date cuts something off.
var noon = time.Date(2026, 12, 1, 12, 0, 0, int(250*time.Millisecond), time.UTC)

// api is a Kubernetes API with a clock of its own.
type api struct {
	mu  sync.Mutex
	now time.Time
	// asked counts the requests.
	asked chan struct{}
}

func (a *api) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	w.Header().Set("Date", a.now.UTC().Format(http.TimeFormat))
	a.mu.Unlock()
	a.asked <- struct{}{}
}

// world is a machine and an API, whose clocks go on together.
type world struct {
	*testing.T

	machine *clocktesting.FakeClock
	api     *api
	clock   *Clock
	client  *http.Client
	address string
}

func begin(t *testing.T, ahead time.Duration) *world {
	t.Helper()
	w := &world{T: t, machine: clocktesting.NewFakeClock(noon.Add(ahead)), api: &api{now: noon, asked: make(chan struct{}, 100)}}
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	w.clock = New(Options{Base: w.machine})
	w.client, w.address = &http.Client{Transport: w.clock.Wrap(server.Client().Transport)}, server.URL
	return w
}

// pass has time go by for both.
func (w *world) pass(d time.Duration) {
	w.machine.Step(d)
	w.api.mu.Lock()
	w.api.now = w.api.now.Add(d)
	w.api.mu.Unlock()
}

// asks makes n requests, a third of a second apart.
func (w *world) asks(n int) {
	w.Helper()
	for range n {
		if err := ask(w.Context(), w.client, w.address); err != nil {
			w.Fatal(err)
		}
		w.pass(333 * time.Millisecond)
	}
}

// off is how far the corrected clock is from the API's.
func (w *world) off() time.Duration {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return w.clock.Now().Sub(w.api.now)
}

func TestCorrection(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		ahead  time.Duration
		asks   int
		within time.Duration
		skew   time.Duration
		exact  bool
	}{
		"a clock that is right":       {"nothing is corrected where nothing is wrong", 0, 10, 0, 0, true},
		"a clock that is almost":      {"within what NTP leaves, the machine's own clock counts", 400 * time.Millisecond, 10, 400 * time.Millisecond, 0, true},
		"a minute behind":             {"one answer is enough at the start, to half a second", -61 * time.Second, 1, 500 * time.Millisecond, 0, false},
		"a minute ahead":              {"in both directions", 61 * time.Second, 1, 500 * time.Millisecond, 0, false},
		"years behind":                {"a machine without a battery", -3 * 365 * 24 * time.Hour, 3, 500 * time.Millisecond, 0, false},
		"a minute behind, more asked": {"several answers show when the second turns", -61 * time.Second, 12, 500 * time.Millisecond, -61 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, tt.ahead)
			if w.clock.Check(nil) == nil {
				t.Error("who has measured nothing cannot tell the time")
			}
			w.asks(tt.asks)
			if got := w.off(); got.Abs() > tt.within || tt.exact && got != tt.ahead {
				t.Errorf("%s: it is off by %s", tt.reason, got)
			}
			if got := w.clock.Skew(); tt.skew != 0 && (got-tt.skew).Abs() > 200*time.Millisecond || tt.exact && tt.ahead == 0 && got != 0 {
				t.Errorf("%s: the metric tells %s", tt.reason, got)
			}
			if err := w.clock.Check(nil); err != nil {
				t.Errorf("%s: %v", tt.reason, err)
			}
		})
	}
}

func TestClockThatIsSet(t *testing.T) {
	w := begin(t, 0)
	w.asks(10)
	w.machine.SetTime(w.machine.Now().Add(-20 * time.Second))
	w.asks(1)
	if w.off().Abs() < 19*time.Second {
		t.Error("one answer, which may have been late, corrects nothing")
	}
	w.asks(1)
	if got := w.off(); got.Abs() > time.Second {
		t.Errorf("two that agree do: it is off by %s", got)
	}
	if err := w.clock.Check(nil); err != nil {
		t.Errorf("it can correct itself, and is ready: %v", err)
	}
	w.machine.SetTime(w.machine.Now().Add(20 * time.Second))
	w.asks(2)
	if got := w.off(); got.Abs() > time.Second {
		t.Errorf("it is corrected back: it is off by %s", got)
	}
}

func TestServersThatDisagree(t *testing.T) {
	w := begin(t, 0)
	w.asks(3)
	was := w.clock.Now()
	for range 6 {
		w.api.mu.Lock()
		w.api.now = w.api.now.Add(time.Hour)
		w.api.mu.Unlock()
		w.asks(1)
		w.api.mu.Lock()
		w.api.now = w.api.now.Add(-time.Hour)
		w.api.mu.Unlock()
		w.asks(1)
	}
	if w.clock.Check(nil) == nil {
		t.Error("which of two is right cannot be told, so that the process is not ready")
	}
	if gone := w.clock.Since(was); gone > time.Minute {
		t.Errorf("neither is believed: the clock went on by %s", gone)
	}
	w.asks(certain)
	if err := w.clock.Check(nil); err != nil {
		t.Errorf("those that agree again are believed: %v", err)
	}
}

// An answer that took long tells little.
func TestSlowAnswer(t *testing.T) {
	w := begin(t, 0)
	w.clock.take(noon.Truncate(time.Second), noon, noon.Add(20*time.Second))
	if got := w.off(); got != 0 {
		t.Errorf("it may have been on its way for all of that: corrected by %s", got)
	}
	w.clock.take(noon.Add(time.Hour), noon, noon.Add(-time.Second))
	if len(w.clock.answers) != 1 {
		t.Error("an answer that came before it was asked for tells nothing")
	}
}

func TestWatch(t *testing.T) {
	w := begin(t, -61*time.Second)
	config := &rest.Config{Host: w.address}
	config.Wrap(w.clock.Wrap)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := w.clock.Watch(ctx, config); err != nil {
			t.Error(err)
		}
	})
	defer watching.Wait()
	defer cancel()
	<-w.api.asked // at once
	for !w.machine.HasWaiters() {
		runtime.Gosched()
	}
	w.pass(askEvery)
	<-w.api.asked
}
