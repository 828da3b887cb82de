// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// lineAgain is the minimum time between two lines of the same kind.
	lineAgain = time.Minute
	// maxLines limits the total number of lines of all kinds in that time.
	maxLines = 120
)

// LogLimiter limits the log lines that unauthenticated requests can cause: one line of each kind per lineAgain, and
// maxLines in total. It is safe for concurrent use.
type LogLimiter struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	since time.Time
	kinds map[any]*lineKind
	// suppressed counts the suppressed lines of kinds that are not tracked.
	suppressed int64
}

type lineKind struct {
	written    bool
	suppressed int64
}

// NewLogLimiter returns a LogLimiter.
func NewLogLimiter(c clock.PassiveClock) *LogLimiter {
	return &LogLimiter{clock: c, since: c.Now(), kinds: map[any]*lineKind{}}
}

// Allow reports whether a line of a kind, which must be comparable, may be written now. leftOut is the number of lines
// of this kind that were suppressed since the last one, plus those of untracked kinds.
func (l *LogLimiter) Allow(of any) (write bool, leftOut int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.clock.Now(); now.Sub(l.since) >= lineAgain {
		l.startWindow(now)
	}
	k := l.kinds[of]
	switch {
	case k == nil && len(l.kinds) >= maxLines:
		l.suppressed++
		return false, 0
	case k == nil:
		k = &lineKind{}
		l.kinds[of] = k
	case k.written:
		k.suppressed++
		return false, 0
	}
	leftOut = k.suppressed + l.suppressed
	k.written, k.suppressed, l.suppressed = true, 0, 0
	return true, leftOut
}

// startWindow starts a new window. It keeps only the kinds that wrote a line and suppressed others; suppressed lines of
// dropped kinds count as untracked.
func (l *LogLimiter) startWindow(now time.Time) {
	l.since = now
	for of, k := range l.kinds {
		if k.suppressed == 0 || !k.written {
			l.suppressed += k.suppressed
			delete(l.kinds, of)
			continue
		}
		k.written = false
	}
}
