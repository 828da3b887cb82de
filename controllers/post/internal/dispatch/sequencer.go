// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync"
	"time"
)

// Sequencer counts the turns of each team within the same second. The count orders teams fairly when many posts are due
// at once. It need not be exact, and is dropped after that second.
type Sequencer struct {
	now func() time.Time

	mu      sync.Mutex
	counts  map[slot]int
	cleared time.Time
}

type slot struct {
	team   string
	second int64
}

const pruneInterval = time.Minute

// NewSequencer returns a Sequencer without counts.
func NewSequencer(now func() time.Time) *Sequencer {
	return &Sequencer{now: now, counts: map[slot]int{}, cleared: now()}
}

// Next takes a turn for the team in the second of due, and returns the number of turns that it had already taken in
// that second.
func (t *Sequencer) Next(team string, due time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.cleared) > pruneInterval {
		t.cleared = now
		for key := range t.counts {
			if key.second < now.Unix() {
				delete(t.counts, key)
			}
		}
	}
	key := slot{team: team, second: due.Unix()}
	taken := t.counts[key]
	t.counts[key]++
	return taken
}
