// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// lookEvery is how often it is looked whether a clock has leapt: so much later than it should, a sleeper is woken.
	lookEvery = time.Second
	// leapt is from what on the clock has leapt: by less, a sleeper may be late. NTP makes no steps that are smaller, and
	// what it slews, it slews in both clocks.
	leapt = 100 * time.Millisecond
	// apartAtMost is how long it may take to read both clocks. If the process was held in between, they tell nothing.
	apartAtMost = 10 * time.Millisecond
)

// Leaps tells those who sleep until a time that their timers have become wrong. A timer counts how long the machine runs
// (its monotonic clock). The time is read from a clock that may be set: by NTP, since the machine
// was suspended, or since the Kubernetes API says otherwise. When that goes forward, all timers for a time end too late.
// When it goes back, they end too early, and who looks at the clock then sleeps again: nobody is told.
type Leaps struct {
	clock   clock.WithTicker
	elapsed func() time.Duration
	// epoch is what the clock showed at first.
	epoch time.Time

	mu   sync.Mutex
	tell []func()
	// least is the least by which the clock was ahead of elapsed since the last leap: that of the timer that will be the latest.
	least time.Duration
}

// NewLeaps returns what looks for leaps of a clock. elapsed is how long the machine has run since some moment, as timers
// count it; nil is the monotonic clock of this machine.
func NewLeaps(clk clock.WithTicker, elapsed func() time.Duration) *Leaps {
	if elapsed == nil {
		elapsed = monotonic()
	}
	l := &Leaps{clock: clk, elapsed: elapsed, epoch: clk.Now().Round(0)}
	l.least = -elapsed()
	return l
}

// Follow has f called after each leap forward.
func (l *Leaps) Follow(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell = append(l.tell, f)
}

// Start implements manager.Runnable.
func (l *Leaps) Start(ctx context.Context) error {
	ticker := l.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			l.look()
		case <-ctx.Done():
			return nil
		}
	}
}

// look tells those who follow if the clock has leapt.
func (l *Leaps) look() {
	for _, f := range l.told() {
		f()
	}
}

// told returns who is to be told.
func (l *Leaps) told() []func() {
	before := l.elapsed()
	ahead := l.clock.Now().Round(0).Sub(l.epoch) - before
	if l.elapsed()-before > apartAtMost {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ahead-l.least < leapt {
		l.least = min(l.least, ahead)
		return nil
	}
	l.least = ahead
	return l.tell
}
