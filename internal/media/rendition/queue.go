// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"context"
	"slices"
	"sync"
)

// Slots limits concurrent work on files. Caches with the same Slots share them, and the memory reserved for them.
type Slots struct{ queue *queue }

// NewSlots returns Slots with the given number of slots.
func NewSlots(places int) Slots { return Slots{newQueue(places)} }

// queue lets a limited number of callers work at the same time. Teams take turns, regardless of the number of files
// that a team has waiting, and each team's files are processed in order. Only one caller at a time works on a key.
type queue struct {
	mu   sync.Mutex
	free int
	// teams are the waiting teams, next one first, and waiting holds their waiters.
	teams   []string
	waiting map[string][]*waiter
	working map[string]bool
}

type waiter struct {
	key   string
	ready chan struct{}
}

func newQueue(places int) *queue {
	return &queue{free: places, waiting: map[string][]*waiter{}, working: map[string]bool{}}
}

// acquire waits until it is the team's turn to work on a key. Call leave afterwards. It returns an error only if the
// context is done.
func (q *queue) acquire(ctx context.Context, team, key string) (leave func(), err error) {
	leave = sync.OnceFunc(func() { q.release(key) })
	w := &waiter{key: key, ready: make(chan struct{})}
	q.mu.Lock()
	if len(q.waiting[team]) == 0 {
		q.teams = append(q.teams, team)
	}
	q.waiting[team] = append(q.waiting[team], w)
	q.dispatch()
	q.mu.Unlock()
	select {
	case <-w.ready:
		return leave, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting[team], w); i >= 0 {
		q.remove(team, i)
		return nil, ctx.Err()
	}
	// The caller's turn came at the same time as the cancellation.
	return leave, nil
}

func (q *queue) release(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, key)
	q.free++
	q.dispatch()
}

func (q *queue) dispatch() {
	for q.free > 0 {
		team, i := q.next()
		if i < 0 {
			return
		}
		w := q.waiting[team][i]
		q.remove(team, i)
		if at := slices.Index(q.teams, team); at >= 0 {
			q.teams = append(slices.Delete(q.teams, at, at+1), team)
		}
		q.working[w.key] = true
		q.free--
		close(w.ready)
	}
}

// next returns the next waiter. i is negative if none can start.
func (q *queue) next() (team string, i int) {
	for _, team := range q.teams {
		if i := slices.IndexFunc(q.waiting[team], func(w *waiter) bool { return !q.working[w.key] }); i >= 0 {
			return team, i
		}
	}
	return "", -1
}

func (q *queue) remove(team string, i int) {
	q.waiting[team] = slices.Delete(q.waiting[team], i, i+1)
	if len(q.waiting[team]) == 0 {
		delete(q.waiting, team)
		q.teams = slices.DeleteFunc(q.teams, func(t string) bool { return t == team })
	}
}
