// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync"
	"time"
)

// Turns counts how many things a team has due in the same second. The count
// orders teams fairly when much is due at once; it need not be exact, and it
// is forgotten when the second has passed.
type Turns struct {
	now func() time.Time

	mu      sync.Mutex
	counts  map[turn]int
	cleared time.Time
}

type turn struct {
	team   string
	second int64
}

// turnsKept is how long counts of passed seconds are kept, in between.
const turnsKept = time.Minute

// NewTurns counts by a clock.
func NewTurns(now func() time.Time) *Turns {
	return &Turns{now: now, counts: map[turn]int{}, cleared: now()}
}

// Take returns how many turns the team has taken for the second of due before.
func (t *Turns) Take(team string, due time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.cleared) > turnsKept {
		t.cleared = now
		for key := range t.counts {
			if key.second < now.Unix() {
				delete(t.counts, key)
			}
		}
	}
	key := turn{team: team, second: due.Unix()}
	taken := t.counts[key]
	t.counts[key]++
	return taken
}
