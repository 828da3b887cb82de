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
	// checkInterval is how often it is looked whether a clock has leapt: so much later than it should, a sleeper is woken.
	checkInterval = time.Second
	// jumpThreshold is from what on the clock has leapt: by less, a sleeper may be late. NTP makes no steps that are smaller, and
	// what it slews, it slews in both clocks.
	jumpThreshold = 100 * time.Millisecond
	// maxReadGap is how long it may take to read both clocks. If the process was held in between, they tell nothing.
	maxReadGap = 10 * time.Millisecond
)

// Jumps tells those who sleep until a time that their timers have become wrong. A timer counts how long the machine runs
// (its monotonic clock). The time is read from a clock that may be set: by NTP, since the machine
// was suspended, or since the Kubernetes API says otherwise. When that goes forward, all timers for a time end too late.
// When it goes back, they end too early, and who looks at the clock then sleeps again: nobody is told.
type Jumps struct {
	clock   clock.WithTicker
	elapsed func() time.Duration
	// epoch is what the clock showed at first.
	epoch time.Time

	mu          sync.Mutex
	subscribers []func()
	// least is the least by which the clock was ahead of elapsed since the last leap: that of the timer that will be the latest.
	least time.Duration
}

// NewJumps returns what looks for leaps of a clock. elapsed is how long the machine has run since some moment, as timers
// count it; nil is the monotonic clock of this machine.
func NewJumps(clk clock.WithTicker, elapsed func() time.Duration) *Jumps {
	if elapsed == nil {
		elapsed = monotonic()
	}
	l := &Jumps{clock: clk, elapsed: elapsed, epoch: clk.Now().Round(0)}
	l.least = -elapsed()
	return l
}

// Subscribe has f called after each leap forward.
func (l *Jumps) Subscribe(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribers = append(l.subscribers, f)
}

// Start implements manager.Runnable.
func (l *Jumps) Start(ctx context.Context) error {
	ticker := l.clock.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			l.check()
		case <-ctx.Done():
			return nil
		}
	}
}

// check tells those who follow if the clock has leapt.
func (l *Jumps) check() {
	for _, f := range l.detect() {
		f()
	}
}

// detect returns who is to be told.
func (l *Jumps) detect() []func() {
	before := l.elapsed()
	ahead := l.clock.Now().Round(0).Sub(l.epoch) - before
	if l.elapsed()-before > maxReadGap {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ahead-l.least < jumpThreshold {
		l.least = min(l.least, ahead)
		return nil
	}
	l.least = ahead
	return l.subscribers
}
