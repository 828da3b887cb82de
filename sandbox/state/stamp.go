// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"sync"
	"time"
)

// Stamp orders everything that the sandbox creates: a millisecond, and a number within that millisecond. Later stamps
// are always greater, also when the clock stands still or goes back.
type Stamp struct {
	// Milli is a Unix time in milliseconds.
	Milli int64 `json:"ms"`
	// Serial counts from 0 within the millisecond.
	Serial int64 `json:"n,omitempty"`
}

// Time is the stamp's instant, in UTC, to the millisecond.
func (s Stamp) Time() time.Time { return time.UnixMilli(s.Milli).UTC() }

// Compare returns a negative number when s is before other, 0 when they are the same, a positive one otherwise.
func (s Stamp) Compare(other Stamp) int {
	return cmp.Or(cmp.Compare(s.Milli, other.Milli), cmp.Compare(s.Serial, other.Serial))
}

// stamper hands out increasing stamps.
type stamper struct {
	mu   sync.Mutex
	last Stamp
}

// next returns a stamp at now, or just after the last one when that is not earlier than now.
func (g *stamper) next(now time.Time) Stamp {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ms := now.UnixMilli(); ms > g.last.Milli {
		g.last = Stamp{Milli: ms}
	} else {
		g.last.Serial++
	}
	return g.last
}

// seen makes sure that no later stamp is at or before s. It is used while a journal is read back.
func (g *stamper) seen(s Stamp) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.Compare(g.last) > 0 {
		g.last = s
	}
}
