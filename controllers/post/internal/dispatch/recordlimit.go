// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// In the first maxPausing of a busy period, each write is followed by a pause of pauseFactor times its duration, but at
// most maxPause. Measured on two processors, writes without pauses take half of the CPU time while a crowd's calls are
// made, even one at a time. All calls of a crowd start within maxPausing.
const (
	pauseFactor = 4
	maxPause    = 500 * time.Millisecond
	maxPausing  = 15 * time.Second
)

// maxWhileBusy is the number of concurrent writes in the rest of a busy period.
const maxWhileBusy = 2

// RecordLimit limits the writes that record results of armed posts: thousands of armed calls may end at the same moment.
// While the scheduler is busy, there are fewer writes, first with pauses. They must not slow down the rest of a crowd's
// calls, or the claims of due posts that were not armed.
type RecordLimit struct {
	most  int
	clock clock.WithTicker
	busy  func() bool

	mu    sync.Mutex
	ended *sync.Cond
	// used counts running writes and pauses, and waiting counts calls of Acquire.
	used, waiting int
	// busySince is the start of the busy period, or zero.
	busySince time.Time
}

// NewRecordLimit returns a limit of most concurrent writes while busy returns false.
func NewRecordLimit(most int, c clock.WithTicker, busy func() bool) *RecordLimit {
	l := &RecordLimit{most: most, clock: c, busy: busy}
	l.ended = sync.NewCond(&l.mu)
	return l
}

// Acquire waits until a write may start. The caller must call release when it has ended.
func (l *RecordLimit) Acquire() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used+l.waiting == 0 {
		l.busySince = time.Time{} // the period of an earlier crowd may have ended unnoticed
	}
	l.waiting++
	for l.used >= l.limit() {
		l.ended.Wait()
	}
	l.waiting--
	l.used++
	l.wakeNext()
	began := l.clock.Now()
	return func() { l.end(began) }
}

// end ends a write, or starts its pause.
func (l *RecordLimit) end(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, pausing := l.observe(); pausing {
		go l.pause(min(pauseFactor*l.clock.Since(began), maxPause))
		return
	}
	l.release()
}

func (l *RecordLimit) pause(pause time.Duration) {
	<-l.clock.After(pause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release()
}

// release frees the place of a write or a pause. The caller holds mu.
func (l *RecordLimit) release() {
	l.used--
	l.wakeNext()
}

// wakeNext wakes a waiting write if one may start. That one wakes the next, since several may start once the scheduler
// is no longer busy.
func (l *RecordLimit) wakeNext() {
	if l.used < l.limit() {
		l.ended.Signal()
	}
}

// limit returns the current maximum of writes and pauses.
func (l *RecordLimit) limit() int {
	switch busy, pausing := l.observe(); {
	case !busy:
		return l.most
	case pausing:
		return 1
	default:
		return min(maxWhileBusy, l.most)
	}
}

// observe updates busySince. It reports whether the scheduler is busy, and whether a pause follows each write.
func (l *RecordLimit) observe() (busy, pausing bool) {
	if !l.busy() {
		l.busySince = time.Time{}
		return false, false
	}
	now := l.clock.Now()
	if l.busySince.IsZero() {
		l.busySince = now
	}
	return true, now.Sub(l.busySince) < maxPausing
}
