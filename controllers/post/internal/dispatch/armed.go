// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"time"
)

// armedCalls are the places for the calls of armed posts, whose claims are stored. They are separate from the posts'
// places: an armed call takes a connection and some memory, but no worker and no write. Teams do not share them out,
// since each account has one call at a time.
type armedCalls struct {
	places, used int
	// ready are the tickets that lack only a place.
	ready []*ticket
}

// WithArmed sets the number of places for armed calls.
func (s *Scheduler) WithArmed(places int) *Scheduler {
	s.armed.places = places
	return s
}

func (a *armedCalls) acquire(t *ticket) bool {
	if a.used < a.places {
		a.used++
		return true
	}
	if !t.ready {
		t.ready = true
		a.ready = insert(a.ready, t)
	}
	return false
}

// QueueArmed queues an armed call for the gate of its account. The returned function waits for its turn, after which
// the caller must call Done, and reports false if it expired first: a stopping process does not take the turns of posts
// that hold the gate. Calls for the same account take turns in the order of their queueing.
func (s *Scheduler) QueueArmed(w Waiter, key string) (wait func(expired <-chan time.Time) bool) {
	turn := make(chan struct{}, 1)
	w.Wake, w.armed = func() { turn <- struct{}{} }, true
	if len(s.TryAcquire(w, []string{key})) > 0 {
		return func(<-chan time.Time) bool { return true }
	}
	return func(expired <-chan time.Time) bool {
		select {
		case <-turn:
			s.TryAcquire(w, []string{key})
			return true
		case <-expired:
			s.removeTicket(w.ID)
			return false
		}
	}
}

// removeTicket removes an armed call from the queue, or returns the turn that it has just got.
func (s *Scheduler) removeTicket(id string) {
	s.mu.Lock()
	defer s.unlock()
	t := s.tickets[id]
	if t.state != waiting {
		s.releaseTicket(t)
		return
	}
	s.dequeue(t)
	delete(s.tickets, id)
	for _, key := range t.keys {
		// The gate is no longer reserved for it.
		s.offer(key)
	}
}

func (s *Scheduler) releaseArmed(t *ticket) {
	s.armed.used--
	for _, key := range slices.Clone(t.acquired) {
		s.releaseGate(t, key)
	}
	for s.armed.used < s.armed.places && len(s.armed.ready) > 0 {
		next := s.armed.ready[0]
		s.armed.ready = s.armed.ready[1:]
		next.ready = false
		s.grant(next)
	}
}
