// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// All teams together may emit allFinalBurst final events at once, and then allFinalPerSecond: 3.4 million targets per
// day. While posts wait for their turn, the limits are lower, since an event costs the API server about as much as a
// claim, and the posts are urgent: with 40 events per second, B2 delivered 53 of 1,000 posts per second instead of 69.
const (
	allFinalPerSecond     = 40
	allFinalBurst         = 500
	allFinalPerSecondBusy = 10
	allFinalBurstBusy     = 50
)

// finalPace emits the final events of all teams in order, as fast as their limits allow.
type finalPace struct {
	clock clock.Clock
	// busy reports whether posts wait for their turn.
	busy func() bool

	mu      sync.Mutex
	limiter *rate.Limiter
	// waiting holds the events above the limits. A goroutine emits them until none is left.
	waiting []func()
}

func newFinalPace(clk clock.Clock, busy func() bool) *finalPace {
	return &finalPace{clock: clk, busy: busy, limiter: rate.NewLimiter(allFinalPerSecond, allFinalBurst)}
}

// add emits an event immediately if the limits allow it, and otherwise after those that wait.
func (f *finalPace) add(emit func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) > 0 {
		f.waiting = append(f.waiting, emit)
		return
	}
	pause := f.reserve()
	if pause == 0 {
		emit()
		return
	}
	f.waiting = append(f.waiting, emit)
	go f.emitWaiting(pause)
}

// emitWaiting emits the first event after a pause, and then the others.
func (f *finalPace) emitWaiting(pause time.Duration) {
	for more := true; more; {
		if pause > 0 {
			<-f.clock.After(pause)
		}
		pause, more = f.emitFirst()
	}
}

// emitFirst emits the first waiting event. It returns the pause before the next one, and false if there is none.
func (f *finalPace) emitFirst() (pause time.Duration, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[0]()
	f.waiting[0] = nil
	if f.waiting = f.waiting[1:]; len(f.waiting) == 0 {
		f.waiting = nil
		return 0, false
	}
	return f.reserve(), true
}

// reserve returns the pause before the next event.
func (f *finalPace) reserve() time.Duration {
	now, limit, burst := f.clock.Now(), rate.Limit(allFinalPerSecond), allFinalBurst
	if f.busy() {
		limit, burst = allFinalPerSecondBusy, allFinalBurstBusy
	}
	f.limiter.SetLimitAt(now, limit)
	f.limiter.SetBurstAt(now, burst)
	return reserve(f.limiter, now)
}
