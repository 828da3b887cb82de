// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync"
	"time"
)

// Turns counts what each team has due in the same second. The count orders teams
// fairly when much is due at once. It need not be exact, and is forgotten when the
// second has passed.
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

// turnsKept is how often the counts of past seconds are dropped.
const turnsKept = time.Minute

// NewTurns returns empty counts.
func NewTurns(now func() time.Time) *Turns {
	return &Turns{now: now, counts: map[turn]int{}, cleared: now()}
}

// Take takes a turn of the team for the second of due, and returns how many it
// had taken before.
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
