// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// While the scheduler is busy, each write is followed by a pause of pauseFactor times its duration, but at most maxPause.
// A write costs an API server with one or two processors 10 ms of processor time: without pauses, even a single series
// of writes takes half of the time that a crowd's calls need.
const (
	pauseFactor = 4
	maxPause    = 500 * time.Millisecond
)

// RecordLimit limits the writes that record results of armed posts: thousands of armed calls may end at the same moment.
// While the scheduler is busy, writes are made one at a time, with pauses, since they are not urgent, and must not slow
// down the claims of due posts that were not armed, or the rest of a crowd's calls.
type RecordLimit struct {
	most  int
	clock clock.WithTicker
	busy  func() bool

	mu    sync.Mutex
	ended *sync.Cond
	// used is the number of writes and pauses.
	used int
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
	for l.used >= l.limit() {
		l.ended.Wait()
	}
	l.used++
	l.wakeNext()
	began := l.clock.Now()
	return func() {
		if l.busy() {
			go l.pause(min(pauseFactor*l.clock.Since(began), maxPause))
			return
		}
		l.release()
	}
}

func (l *RecordLimit) pause(pause time.Duration) {
	<-l.clock.After(pause)
	l.release()
}

func (l *RecordLimit) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
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

func (l *RecordLimit) limit() int {
	if l.busy() {
		return 1
	}
	return l.most
}
