// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// leaper is a machine with a clock that can be set and is checked every second.
type leaper struct {
	*Jumps

	wall *clocktesting.FakeClock
	ran  time.Duration
	told int
}

func newLeaper() *leaper {
	l := &leaper{wall: clocktesting.NewFakeClock(noon), ran: time.Hour}
	l.Jumps = NewJumps(l.wall, func() time.Duration { return l.ran })
	l.Subscribe(func() { l.told++ })
	return l
}

// set lets a second pass, moves the clock by the given amount, and checks it.
func (l *leaper) set(by time.Duration) {
	l.ran += time.Second
	l.wall.SetTime(l.wall.Now().Add(time.Second + by))
	l.check()
}

func TestJumps(t *testing.T) {
	ms := time.Millisecond
	for name, tt := range map[string]struct {
		reason string
		steps  []time.Duration
		want   int
	}{
		"never":                 {"no jump is reported", slices.Repeat([]time.Duration{0}, 100_000), 0},
		"noise":                 {"clocks are not read at the same instant", slices.Repeat([]time.Duration{20 * ms, -20 * ms}, 1000), 0},
		"forward":               {"timers end too late", []time.Duration{0, time.Minute, 0, 0}, 1},
		"by an hour":            {"a suspended machine's clock jumps as well", []time.Duration{time.Hour, 0}, 1},
		"by a tenth":            {"from that on it is a leap", []time.Duration{100 * ms, 0}, 1},
		"by less":               {"the jump is below the threshold", []time.Duration{99 * ms, 0}, 0},
		"by little, and often":  {"small jumps add up", slices.Repeat([]time.Duration{10 * ms}, 25), 2},
		"back":                  {"timers end too early, and their owners read the clock", []time.Duration{-time.Minute, 0, 0}, 0},
		"back, and forward":     {"timers set in between would be late", []time.Duration{-time.Minute, 0, time.Minute, 0}, 1},
		"forward, and back":     {"the woken goroutines sleep again", []time.Duration{time.Minute, 0, -time.Minute, 0}, 1},
		"back by little, often": {"timers set last would be late", append(slices.Repeat([]time.Duration{-10 * ms}, 10), 100*ms), 1},
		"twice":                 {"each jump is reported", []time.Duration{time.Minute, 0, time.Minute}, 2},
	} {
		l := newLeaper()
		for _, by := range tt.steps {
			l.set(by)
		}
		if l.told != tt.want {
			t.Errorf("%s (%s): %d notifications, want %d", name, tt.reason, l.told, tt.want)
		}
	}
}

// TestInterruptedReadings interrupts the process between reading the two clocks. One reading is then older than the
// other, which is not a jump.
func TestInterruptedReadings(t *testing.T) {
	l := newLeaper()
	var hold time.Duration
	l.elapsed = func() time.Duration {
		defer func() { l.ran += hold; l.wall.Step(hold) }()
		return l.ran
	}
	hold = time.Second
	l.check()
	hold = 0
	l.check()
	if l.told != 0 {
		t.Errorf("%d notifications without a jump", l.told)
	}
	l.set(time.Minute)
	if l.told != 1 {
		t.Error("a later jump was not reported")
	}
}

// TestCorrectionsAreJumps checks that a correction by the Kubernetes API's clock notifies subscribers.
func TestCorrectionsAreJumps(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		ahead  time.Duration
		want   int
	}{
		"a clock that is behind": {"the clock is set forward", -61 * time.Second, 1},
		"a clock that is right":  {"the clock stays", 0, 0},
		"a clock that is ahead":  {"the clock is corrected", 61 * time.Second, 0},
	} {
		w := begin(t, tt.ahead)
		notified := 0
		leaps := NewJumps(w.clock, w.elapsed)
		leaps.Subscribe(func() { notified++ })
		w.sendRequests(1)
		leaps.check()
		if notified != tt.want {
			t.Errorf("%s (%s): %d notifications, want %d", name, tt.reason, notified, tt.want)
		}
	}
}

// TestChecksWhileRunning checks that the clock is checked only while the process runs.
func TestChecksWhileRunning(t *testing.T) {
	wall := clocktesting.NewFakeClock(noon)
	leaps := NewJumps(wall, func() time.Duration { return 0 })
	notified := make(chan struct{}, 1)
	leaps.Subscribe(func() { notified <- struct{}{} })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- leaps.Start(ctx) }()
	for !wall.HasWaiters() {
		runtime.Gosched()
	}
	wall.Step(checkInterval)
	<-notified
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a process that stops is no error: %v", err)
	}
}

func BenchmarkLook(b *testing.B) {
	leaps := NewJumps(New(Options{Base: clock.RealClock{}}), nil)
	b.ReportAllocs()
	for b.Loop() {
		leaps.check()
	}
}
