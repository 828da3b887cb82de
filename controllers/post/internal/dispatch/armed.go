// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"time"
)

// armedCalls manages the places for calls of armed posts, whose claims are already stored. They are separate from the
// posts' places: an armed call takes a connection and some memory, but no worker and no write.
//
// Most places are taken in order. One part of the rest is reserved for teams and platforms with few calls, and the last
// part for platforms with few calls, so that neither a team's crowd nor an unresponsive platform can hold all places.
type armedCalls struct {
	places, used int
	// opened is the number of calls of open groups that wait for their turn.
	opened int
	// ready holds the tickets that lack only a place. byTeam and byPlatform count the tickets that are ready or have a
	// place.
	ready              []*ticket
	byTeam, byPlatform map[string]*armedShare
}

// armedShare counts the calls of a team or a platform: those that have a place, and those that are ready for one.
type armedShare struct{ used, ready int }

// sharedPart determines the size of each of the two reserved parts: one in sharedPart places.
const sharedPart = 8

// WithArmed sets the number of places for armed calls.
func (s *Scheduler) WithArmed(places int) *Scheduler {
	s.armed = armedCalls{places: places, byTeam: map[string]*armedShare{}, byPlatform: map[string]*armedShare{}}
	return s
}

// shares returns the shares of a ticket's team and platform, and creates them if necessary.
func (a *armedCalls) shares(t *ticket) [2]*armedShare {
	of := func(all map[string]*armedShare, name string) *armedShare {
		if all[name] == nil {
			all[name] = &armedShare{}
		}
		return all[name]
	}
	return [2]*armedShare{of(a.byTeam, t.Team), of(a.byPlatform, t.Platform)}
}

// hasPlace reports whether a ticket may take a place.
func (a *armedCalls) hasPlace(t *ticket) bool {
	part, both := a.places/sharedPart, a.shares(t)
	fewOfPlatform := both[1].used < max(part/len(a.byPlatform), 1)
	switch left := a.places - a.used; {
	case left > 2*part:
		return true
	case left > part:
		return fewOfPlatform || both[0].used < max(part/len(a.byTeam), 1)
	default:
		return left > 0 && fewOfPlatform
	}
}

func (a *armedCalls) acquire(t *ticket) bool {
	if a.hasPlace(t) {
		a.used++
		a.opened--
		for _, share := range a.shares(t) {
			share.used++
		}
		return true
	}
	if !t.ready {
		t.ready = true
		a.ready = insert(a.ready, t)
		for _, share := range a.shares(t) {
			share.ready++
		}
	}
	return false
}

// next returns the ticket that takes the next free place, or nil: the first one of the team with the fewest calls.
func (a *armedCalls) next() (next *ticket) {
	for _, t := range a.ready {
		if a.hasPlace(t) && (next == nil || a.shares(t)[0].used < a.shares(next)[0].used) {
			next = t
		}
	}
	return next
}

// unready removes a ticket from those that lack only a place.
func (a *armedCalls) unready(t *ticket) {
	t.ready = false
	a.ready = remove(a.ready, t)
	for _, share := range a.shares(t) {
		share.ready--
	}
	a.prune(t)
}

// prune drops the shares of a ticket's team and platform if they have no calls.
func (a *armedCalls) prune(t *ticket) {
	both := a.shares(t)
	if *both[0] == (armedShare{}) {
		delete(a.byTeam, t.Team)
	}
	if *both[1] == (armedShare{}) {
		delete(a.byPlatform, t.Platform)
	}
}

// ArmedCall is an armed call in the queue of its account. From the time it is queued until it ends or leaves the queue,
// it keeps the account's later calls behind it, including those of posts that are not armed.
type ArmedCall struct {
	scheduler *Scheduler
	id        string
	turn      chan struct{}
}

// QueueArmed queues an armed call for the gate of its account, in the order in which the calls are queued. It does not
// get its turn before Open. w.ID identifies the call.
func (s *Scheduler) QueueArmed(w Waiter, key string) *ArmedCall {
	call := &ArmedCall{scheduler: s, id: w.ID, turn: make(chan struct{}, 1)}
	w.Wake, w.armed = func() { call.turn <- struct{}{} }, true
	s.mu.Lock()
	defer s.unlock()
	s.issued++
	t := &ticket{Waiter: w, number: s.issued, keys: []string{key}, held: true}
	s.tickets[t.ID] = t
	g := s.gateOf(key)
	g.queue = insert(g.queue, t)
	g.armed++
	return call
}

// Open lets the call get its turn, once its group is open.
func (c *ArmedCall) Open() {
	c.scheduler.mu.Lock()
	defer c.scheduler.unlock()
	if t := c.scheduler.tickets[c.id]; t != nil && t.held {
		t.held = false
		c.scheduler.armed.opened++
		c.scheduler.grant(t)
	}
}

// Wait waits for the call's turn, after which the caller must call Done. It returns false if expired fires first: in a
// stopping process, posts that hold the gate may never release it.
func (c *ArmedCall) Wait(expired <-chan time.Time) bool {
	select {
	case <-c.turn:
		c.scheduler.mu.Lock()
		defer c.scheduler.unlock()
		c.scheduler.tickets[c.id].state = entered
		return true
	case <-expired:
		c.Done()
		return false
	}
}

// Done ends the call, or removes it from the queue.
func (c *ArmedCall) Done() {
	s := c.scheduler
	s.mu.Lock()
	defer s.unlock()
	t := s.tickets[c.id]
	switch {
	case t == nil:
	case t.state != waiting:
		s.releaseTicket(t)
	default:
		if !t.held {
			s.armed.opened--
		}
		s.dequeue(t)
		delete(s.tickets, c.id)
		for _, key := range t.keys {
			// The next ticket may use the gate.
			s.offer(key)
		}
	}
}

// Busy reports whether posts, or armed calls of open groups, wait for their turn.
func (s *Scheduler) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.armed.opened > 0 || s.waiting() > 0
}

// BusyUntil returns Busy until the process stops or gives up the shard. After that, posts wait in vain, and all results
// must be recorded soon.
func (s *Scheduler) BusyUntil(stopping <-chan struct{}) (busy func() bool) {
	return func() bool {
		select {
		case <-stopping:
			return false
		default:
			return s.Busy()
		}
	}
}

// hasArmedBefore reports whether an armed call waits in front of a ticket.
func (g *accountGate) hasArmedBefore(t *ticket) bool {
	if g.armed == 0 {
		return false
	}
	for _, first := range g.queue {
		if before(first, t) >= 0 {
			return false
		}
		if first.armed {
			return true
		}
	}
	return false
}

func (s *Scheduler) releaseArmed(t *ticket) {
	s.armed.used--
	for _, share := range s.armed.shares(t) {
		share.used--
	}
	s.armed.prune(t)
	for _, key := range slices.Clone(t.acquired) {
		s.releaseGate(t, key)
	}
	for next := s.armed.next(); next != nil; next = s.armed.next() {
		s.armed.unready(next)
		s.grant(next)
	}
}
