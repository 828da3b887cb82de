// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/subscribers"
)

const (
	// checkInterval is how often clocks are checked for jumps, and so a waiter's maximum delay after one.
	checkInterval = time.Second
	// jumpThreshold is the smallest jump that counts. NTP does not make smaller steps: it slews both clocks instead.
	jumpThreshold = 100 * time.Millisecond
	// maxReadGap limits the time between reading both clocks. After an interruption, they cannot be compared.
	maxReadGap = 10 * time.Millisecond
)

// Jumps notifies subscribers when their timers become wrong. Subscribers wait for a point in time. Their timers measure
// the machine's running time (its monotonic clock), but the time comes from a clock that can be set: by NTP, after a
// suspension of the machine, or by a correction from the Kubernetes API. After a jump forward, timers fire too late.
// After a jump back, they fire too early; the subscriber then checks the clock and waits again, so it does not need a
// notification.
type Jumps struct {
	clock   clock.WithTicker
	elapsed func() time.Duration
	// epoch is the first reading of the clock.
	epoch time.Time

	subscribers subscribers.List

	mu sync.Mutex
	// least is the clock's smallest lead over elapsed since the last jump: the lead for the timer that fires last.
	least time.Duration
}

// NewJumps returns a Jumps for clk. elapsed returns the machine's running time since a fixed moment, as timers measure
// it. Nil means this machine's monotonic clock.
func NewJumps(clk clock.WithTicker, elapsed func() time.Duration) *Jumps {
	if elapsed == nil {
		elapsed = monotonic()
	}
	l := &Jumps{clock: clk, elapsed: elapsed, epoch: clk.Now().Round(0)}
	l.least = -elapsed()
	return l
}

// Subscribe registers f to be called after each jump forward, until unsubscribe is called.
func (l *Jumps) Subscribe(f func()) (unsubscribe func()) {
	return l.subscribers.Subscribe(f)
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

func (l *Jumps) check() {
	if l.detect() {
		l.subscribers.Notify()
	}
}

// detect reports whether the clock has jumped forward since the last call.
func (l *Jumps) detect() bool {
	before := l.elapsed()
	ahead := l.clock.Now().Round(0).Sub(l.epoch) - before
	if l.elapsed()-before > maxReadGap {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ahead-l.least < jumpThreshold {
		l.least = min(l.least, ahead)
		return false
	}
	l.least = ahead
	return true
}
