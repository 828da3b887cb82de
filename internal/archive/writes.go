// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// writes are what this process is writing of teams.
type writes struct {
	mu    sync.Mutex
	under map[Team][]chan struct{}
}

// TrackWrite says that something of a team is about to be written, records or lists, until done is
// called. Whoever writes sees only then whether the Team is being deleted: who clears the
// archive of it has seen that, and waits for those who have not. So nothing is written after it
// was cleared, which nobody would find but a Team of its name; and of a process that dies
// meanwhile, the next one clears it.
func (a *Archive) TrackWrite(team Team) (done func()) {
	ended := make(chan struct{})
	w := &a.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.under == nil {
		w.under = map[Team][]chan struct{}{}
	}
	w.under[team] = append(w.under[team], ended)
	return func() {
		close(ended)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.under[team] = slices.DeleteFunc(w.under[team], func(c chan struct{}) bool { return c == ended })
		if len(w.under[team]) == 0 {
			delete(w.under, team)
		}
	}
}

// waitForWrites waits for what is being written of a team.
func (a *Archive) waitForWrites(ctx context.Context, team Team) error {
	a.writes.mu.Lock()
	under := slices.Clone(a.writes.under[team])
	a.writes.mu.Unlock()
	for _, ended := range under {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("what is kept of team %s is still being written: %w", team.Name, ctx.Err())
		}
	}
	return nil
}
