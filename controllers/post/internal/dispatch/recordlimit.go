// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import "sync"

// RecordLimit limits the concurrent writes that record results of armed posts: thousands of armed calls may end at the
// same moment. The limit is lower while the scheduler is busy, since these writes are not urgent, and must not slow down
// the claims of due posts that were not armed, or the rest of a crowd's calls.
type RecordLimit struct {
	most, whileBusy int
	busy            func() bool

	mu    sync.Mutex
	ended *sync.Cond
	used  int
}

// NewRecordLimit returns a limit of most writes, or whileBusy writes, if that is less, while busy returns true.
func NewRecordLimit(most, whileBusy int, busy func() bool) *RecordLimit {
	l := &RecordLimit{most: most, whileBusy: min(whileBusy, most), busy: busy}
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
	return l.release
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
		return l.whileBusy
	}
	return l.most
}
