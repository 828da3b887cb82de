// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

type writes struct {
	mu    sync.Mutex
	under map[Team][]chan struct{}
}

// TrackWrite registers a write of a team's records or lists until done is called. Call it before checking whether the
// Team is being deleted: Clear runs once the deletion is visible, and waits for writers that have not seen it. So no
// records remain after Clear, where only a new Team with the same name would find them. If the process dies in the
// meantime, the next one clears the archive.
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

func (a *Archive) waitForWrites(ctx context.Context, team Team) error {
	a.writes.mu.Lock()
	under := slices.Clone(a.writes.under[team])
	a.writes.mu.Unlock()
	for _, ended := range under {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("the archive of team %s is still being written: %w", team.Name, ctx.Err())
		}
	}
	return nil
}
