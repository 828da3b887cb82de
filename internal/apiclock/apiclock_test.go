// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// noon is the initial time of the API's clock: 250 ms past noon, which the Date header truncates.
var noon = time.Date(2026, 12, 1, 12, 0, 0, int(250*time.Millisecond), time.UTC)

// api is a Kubernetes API with its own clock.
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

// world is a machine and an API, whose clocks advance together.
type world struct {
	*testing.T

	machine *clocktesting.FakeClock
	// ran is how long the machine has been running.
	ran     atomic.Int64
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
	w.clock = New(Options{Base: w.machine, Elapsed: w.elapsed})
	w.client, w.address = &http.Client{Transport: w.clock.Wrap(server.Client().Transport)}, server.URL
	return w
}

func (w *world) elapsed() time.Duration { return time.Duration(w.ran.Load()) }

// pass advances both clocks.
func (w *world) pass(d time.Duration) {
	w.ran.Add(int64(d))
	w.machine.Step(d)
	w.api.mu.Lock()
	w.api.now = w.api.now.Add(d)
	w.api.mu.Unlock()
}

// sendRequests makes n requests, a third of a second apart.
func (w *world) sendRequests(n int) {
	w.Helper()
	for range n {
		if err := poll(w.Context(), w.client, w.address); err != nil {
			w.Fatal(err)
		}
		w.pass(333 * time.Millisecond)
	}
}

// off returns the difference between the corrected clock and the API's.
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
		"a clock that is right":       {"a correct clock is not corrected", 0, 10, 0, 0, true},
		"a clock that is almost":      {"NTP corrects small differences", 400 * time.Millisecond, 10, 400 * time.Millisecond, 0, true},
		"a minute behind":             {"a single response sets the clock to half a second", -61 * time.Second, 1, 500 * time.Millisecond, 0, false},
		"a minute ahead":              {"a single response also corrects a fast clock", 61 * time.Second, 1, 500 * time.Millisecond, 0, false},
		"years behind":                {"a machine without a battery", -3 * 365 * 24 * time.Hour, 3, 500 * time.Millisecond, 0, false},
		"a minute behind, more asked": {"several responses determine the difference more precisely", -61 * time.Second, 12, 500 * time.Millisecond, -61 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, tt.ahead)
			if w.clock.Check(nil) == nil {
				t.Error("without a measurement, the time must count as unknown")
			}
			w.sendRequests(tt.asks)
			if got := w.off(); got.Abs() > tt.within || tt.exact && got != tt.ahead {
				t.Errorf("%s: it is off by %s", tt.reason, got)
			}
			if got := w.clock.Skew(); tt.skew != 0 && (got-tt.skew).Abs() > 200*time.Millisecond || tt.exact && tt.ahead == 0 && got != 0 {
				t.Errorf("%s: the skew metric is %s", tt.reason, got)
			}
			if err := w.clock.Check(nil); err != nil {
				t.Errorf("%s: %v", tt.reason, err)
			}
		})
	}
}

// An adjustment of the clock is accepted only after the API confirms it: a clock that is set forward would publish
// posts that are not due.
func TestCorrectedClock(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		ahead  time.Duration
		set    []time.Duration
		skew   time.Duration
	}{
		"forward":           {"a jump does not make posts due", 0, []time.Duration{20 * time.Minute}, 20 * time.Minute},
		"back":              {"due posts are published", 0, []time.Duration{-20 * time.Minute}, -20 * time.Minute},
		"right at last":     {"the correction is no longer necessary", -61 * time.Second, []time.Duration{61 * time.Second}, 0},
		"wrong, and right":  {"the correction is no longer necessary", 0, []time.Duration{20 * time.Minute, -20 * time.Minute}, 0},
		"wrong in two ways": {"each jump is detected", 61 * time.Second, []time.Duration{-time.Hour}, 61*time.Second - time.Hour},
		"repeated jumps":    {"the API's clock is used", 0, []time.Duration{time.Hour, time.Hour, -3 * time.Hour}, -time.Hour},
		"by milliseconds":   {"NTP corrects small jumps", 0, []time.Duration{200 * time.Millisecond}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, tt.ahead)
			w.sendRequests(10)
			for _, by := range tt.set {
				before := w.off()
				w.machine.SetTime(w.machine.Now().Add(by))
				if got := w.off(); got != before {
					t.Errorf("%s: without a request, the corrected time jumped by %s", tt.reason, got-before)
				}
				if !w.clock.stepped() {
					t.Errorf("%s: a jump must trigger a request to the API", tt.reason)
				}
				for range 4 {
					w.sendRequests(1)
					if got := w.off(); got.Abs() > 500*time.Millisecond {
						t.Errorf("%s: it is off by %s", tt.reason, got)
					}
					if w.clock.stepped() {
						t.Errorf("%s: one response suffices", tt.reason)
					}
				}
				if err := w.clock.Check(nil); err != nil {
					t.Errorf("the time is known, but the check returned %v", err)
				}
			}
			if got := w.clock.Skew(); (got - tt.skew).Abs() > 400*time.Millisecond {
				t.Errorf("%s: the skew metric is %s, want %s", tt.reason, got, tt.skew)
			}
		})
	}
}

// A suspended machine does not run, and its clock is ahead of its running time: only the API has the correct time.
func TestSuspendedMachine(t *testing.T) {
	w := begin(t, 0)
	w.sendRequests(10)
	notified := 0
	leaps := NewJumps(w.clock, w.elapsed)
	leaps.Subscribe(func() { notified++ })
	w.pass(time.Hour)
	w.ran.Add(-int64(time.Hour))
	if !w.clock.stepped() {
		t.Error("a jump must trigger a request to the API")
	}
	w.sendRequests(1)
	leaps.check()
	if notified != 0 || w.off().Abs() < 59*time.Minute {
		t.Errorf("a single response, which may be late, must not correct the clock: off by %s, %d notifications", w.off(), notified)
	}
	if !w.clock.stepped() {
		t.Error("the API must be called again")
	}
	w.sendRequests(1)
	leaps.check()
	if notified != 1 || w.off().Abs() > 500*time.Millisecond || w.clock.Skew() != 0 {
		t.Errorf("two equal responses correct the clock: off by %s, %d notifications; the skew metric of a correct clock is %s", w.off(), notified, w.clock.Skew())
	}
}

func TestContradictoryServers(t *testing.T) {
	w := begin(t, 0)
	w.sendRequests(3)
	was := w.clock.Now()
	for range 6 {
		w.api.mu.Lock()
		w.api.now = w.api.now.Add(time.Hour)
		w.api.mu.Unlock()
		w.sendRequests(1)
		w.api.mu.Lock()
		w.api.now = w.api.now.Add(-time.Hour)
		w.api.mu.Unlock()
		w.sendRequests(1)
	}
	if w.clock.Check(nil) == nil {
		t.Error("contradictory responses must make the process unready")
	}
	if gone := w.clock.Since(was); gone > time.Minute {
		t.Errorf("contradictory responses must not change the clock: it advanced by %s", gone)
	}
	w.sendRequests(certain)
	if err := w.clock.Check(nil); err != nil {
		t.Errorf("equal responses must make the process ready: %v", err)
	}
}

// A slow response is a weak measurement.
func TestSlowResponse(t *testing.T) {
	w := begin(t, 0)
	w.clock.observe(noon.Truncate(time.Second), noon, noon.Add(20*time.Second))
	if got := w.off(); got != 0 {
		t.Errorf("the response may have taken all of that time: corrected by %s", got)
	}
	w.clock.observe(noon.Add(time.Hour), noon, noon.Add(-time.Second))
	if len(w.clock.samples) != 1 {
		t.Error("a response older than its request was used")
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
	<-w.api.asked // immediately
	for !w.machine.HasWaiters() {
		runtime.Gosched()
	}
	w.pass(pollInterval)
	<-w.api.asked
	for w.answers() < 2 {
		runtime.Gosched()
	}
	w.machine.SetTime(w.machine.Now().Add(time.Hour))
	<-w.api.asked // within a second, since its clock was set
}

// answers returns the clock's number of samples.
func (w *world) answers() int {
	w.clock.mu.Lock()
	defer w.clock.mu.Unlock()
	return len(w.clock.samples)
}
