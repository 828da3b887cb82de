// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package anonymous

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// lineAgain is after how long a line of the same kind is written once more.
	lineAgain = time.Minute
	// maxLines is how many lines are written in that time, of all kinds together.
	maxLines = 120
)

// LogLimiter bounds the lines of a log that anybody can cause: one in a minute for each kind, and so many in all. It is safe for
// concurrent use.
type LogLimiter struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	since time.Time
	kinds map[any]*kind
	// suppressed counts the lines that were left out, of kinds that are not remembered.
	suppressed int64
}

// kind is what is known of the lines of one kind.
type kind struct {
	written    bool
	suppressed int64
}

// NewLogLimiter returns the bounds of one log.
func NewLogLimiter(c clock.PassiveClock) *LogLimiter {
	return &LogLimiter{clock: c, since: c.Now(), kinds: map[any]*kind{}}
}

// Allow reports whether a line of a kind, which is comparable, is written now. leftOut counts the lines of this kind since the
// last one, and the lines of kinds that were forgotten.
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
		k = &kind{}
		l.kinds[of] = k
	case k.written:
		k.suppressed++
		return false, 0
	}
	leftOut = k.suppressed + l.suppressed
	k.written, k.suppressed, l.suppressed = true, 0, 0
	return true, leftOut
}

// startWindow begins a minute. Kinds of which nothing was left out are forgotten, and so are those that the last one knew no more of.
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
