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
// claim, and the posts are urgent: of a crowd of 1,000 posts (B2), Herald delivered 62 to 69 instead of 53 per second.
// If more than maxHeldBack events wait, about 10 MiB, the usual limits apply again.
const (
	allFinalPerSecond     = 40
	allFinalBurst         = 500
	allFinalPerSecondBusy = 10
	allFinalBurstBusy     = 50
	maxHeldBack           = 10_000
)

// finalPace limits the rate of all teams' final events. It takes turns between teams, and keeps each team's order.
type finalPace struct {
	clock clock.Clock
	// busy reports whether posts wait for their turn.
	busy func() bool

	mu      sync.Mutex
	limiter *rate.Limiter
	// waiting holds the events above the limits by team, and teams the order of the teams. A goroutine emits them until
	// none is left. count is their number.
	waiting map[string][]func()
	teams   []string
	count   int
}

func newFinalPace(clk clock.Clock, busy func() bool) *finalPace {
	return &finalPace{clock: clk, busy: busy, limiter: rate.NewLimiter(allFinalPerSecond, allFinalBurst), waiting: map[string][]func(){}}
}

// add emits a team's event immediately if the limits allow it, and otherwise when it is the team's turn.
func (f *finalPace) add(team string, emit func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count > 0 {
		f.wait(team, emit)
		return
	}
	pause := f.reserve()
	if pause == 0 {
		emit()
		return
	}
	f.wait(team, emit)
	go f.emitWaiting(pause)
}

func (f *finalPace) wait(team string, emit func()) {
	if len(f.waiting[team]) == 0 {
		f.teams = append(f.teams, team)
	}
	f.waiting[team] = append(f.waiting[team], emit)
	f.count++
}

// emitWaiting emits the first event after a pause, and then the others.
func (f *finalPace) emitWaiting(pause time.Duration) {
	for more := true; more; {
		if pause > 0 {
			<-f.clock.After(pause)
		}
		pause, more = f.emitNext()
	}
}

// emitNext emits the first event of the next team. It returns the pause before the following one, and false if there is
// none.
func (f *finalPace) emitNext() (pause time.Duration, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	team := f.teams[0]
	f.teams = f.teams[1:]
	events := f.waiting[team]
	events[0]()
	events[0] = nil
	if f.waiting[team] = events[1:]; len(events) > 1 {
		f.teams = append(f.teams, team)
	} else {
		delete(f.waiting, team)
	}
	f.count--
	if f.count == 0 {
		f.teams = nil
		return 0, false
	}
	return f.reserve(), true
}

// reserve returns the pause before the next event.
func (f *finalPace) reserve() time.Duration {
	now, limit, burst := f.clock.Now(), rate.Limit(allFinalPerSecond), allFinalBurst
	if f.count <= maxHeldBack && f.busy() {
		limit, burst = allFinalPerSecondBusy, allFinalBurstBusy
	}
	f.limiter.SetLimitAt(now, limit)
	f.limiter.SetBurstAt(now, burst)
	return reserve(f.limiter, now)
}
