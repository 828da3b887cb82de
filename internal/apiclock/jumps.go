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
	// checkInterval is how often clocks are checked for jumps, and so the longest delay of a waiter after a jump.
	checkInterval = time.Second
	// jumpThreshold is the smallest jump; a waiter may be late by less. NTP makes no smaller steps, and it slews both
	// clocks.
	jumpThreshold = 100 * time.Millisecond
	// maxReadGap is the longest time for a read of both clocks. If the process was interrupted in between, the readings
	// are not comparable.
	maxReadGap = 10 * time.Millisecond
)

// Jumps notifies subscribers that wait for a time when their timers become wrong. A timer counts how long the machine
// runs (its monotonic clock). The time is read from a clock that can be set: by NTP, after a suspension of the machine,
// or by a correction from the Kubernetes API. After a jump forward, timers for a time fire too late. After a jump back,
// they fire too early, and the subscriber checks the clock and waits again: no notification is needed.
type Jumps struct {
	clock   clock.WithTicker
	elapsed func() time.Duration
	// epoch is the first reading of the clock.
	epoch time.Time

	mu          sync.Mutex
	subscribers []func()
	// least is the smallest lead of the clock over elapsed since the last jump: the one of the latest timer.
	least time.Duration
}

// NewJumps returns a Jumps for a clock. elapsed returns how long the machine has run since some moment, as timers count
// it; nil is this machine's monotonic clock.
func NewJumps(clk clock.WithTicker, elapsed func() time.Duration) *Jumps {
	if elapsed == nil {
		elapsed = monotonic()
	}
	l := &Jumps{clock: clk, elapsed: elapsed, epoch: clk.Now().Round(0)}
	l.least = -elapsed()
	return l
}

// Subscribe registers f to be called after each jump forward.
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

// check calls the subscribers if the clock has jumped.
func (l *Jumps) check() {
	for _, f := range l.detect() {
		f()
	}
}

// detect returns the subscribers to call.
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
