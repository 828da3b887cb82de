// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"slices"
)

const (
	// scanned is how many of those that wait for a gate are looked at when it is
	// free. Those further back come closer with each turn.
	scanned = 64
	// maxOvertaken is how often others may overtake a ticket that waits for several
	// gates; then the gates are kept free for it.
	maxOvertaken = 32
)

// Scheduler gives a post its turn when two things are free at once:
//
//   - A place. Places, such as the workers that may be busy with a call, are
//     divided between teams: with n active teams each gets one part in n+1, so
//     that a place is free for the next team. Each active team may have one
//     place, up to twice as many in all as there are places.
//   - The gates of its accounts. At most one call that could publish is under
//     way per account. That gives ordering, a simple pace, and lookups that no
//     other post of the account confuses. A post takes all its gates together, so
//     that its targets are claimed by one write and recorded by another. A gate
//     whose call is slow is left out, so that one account does not hold up the
//     others.
//
// A post holds nothing while it waits, so there is no deadlock. When its turn has
// come, everything is reserved for it and it is woken.
type Scheduler struct {
	lock

	places int
	// used counts the places that are taken.
	used    int
	tickets map[string]*ticket
	gates   map[string]*accountGate
	teams   map[string]*team
	issued  uint64
}

// ticket is a post that waits for its turn, was woken for it, or has it.
type ticket struct {
	Waiter
	number   uint64
	keys     []string
	acquired []string
	state    state
	// ready is set while the ticket lacks only a place and stands in its team's
	// list; passed counts how often it was overtaken.
	ready  bool
	passed int
}

type state int

const (
	waiting state = iota
	woken
	entered
)

type accountGate struct {
	holder *ticket
	slow   bool
	queue  []*ticket
	// reservedFor is the first in the queue that was overtaken too often.
	reservedFor *ticket
}

type team struct {
	used, waits int
	ready       []*ticket
}

// NewScheduler returns a scheduler with so many places, at least one.
func NewScheduler(places int) *Scheduler {
	return &Scheduler{places: max(places, 1), tickets: map[string]*ticket{}, gates: map[string]*accountGate{}, teams: map[string]*team{}}
}

// TryAcquire asks for a place and the gates of keys, which are all different. It
// returns the gates that it took; the caller then calls Done. If it returns none,
// the waiter is woken when its turn has come.
func (s *Scheduler) TryAcquire(w Waiter, keys []string) []string {
	s.mu.Lock()
	defer s.unlock()
	t := s.tickets[w.ID]
	if t != nil && t.state == woken {
		for _, key := range slices.Clone(t.acquired) {
			if !slices.Contains(keys, key) {
				s.releaseGate(t, key)
			}
		}
		if len(t.acquired) == 0 {
			s.releaseTicket(t)
			t = nil
		}
	}
	if t != nil && t.state == waiting && !slices.Equal(t.keys, keys) {
		s.dequeue(t)
		delete(s.tickets, t.ID)
		s.teamOf(t).waits--
		for _, key := range t.keys {
			// The gate is no longer kept free for it.
			s.offer(key)
		}
		t = nil
	}
	if t == nil {
		s.issued++
		t = &ticket{Waiter: w, number: s.issued, keys: slices.Clone(keys)}
		s.tickets[t.ID] = t
		s.teamOf(t).waits++
		for _, key := range keys {
			g := s.gateOf(key)
			g.queue = insert(g.queue, t)
		}
		s.tryGrant(t)
	}
	if t.state != woken {
		return nil
	}
	t.state = entered
	return slices.Clone(t.acquired)
}

// Release opens a gate that the waiter holds: its call has ended.
func (s *Scheduler) Release(id, key string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && slices.Contains(t.acquired, key) {
		s.releaseGate(t, key)
	}
}

// Done frees the waiter's place and the gates that it still holds.
func (s *Scheduler) Done(id string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && t.state != waiting {
		s.releaseTicket(t)
	}
}

// ReturnWake is called after each pass over a waiter: if it was woken and did not
// enter, others get its turn.
func (s *Scheduler) ReturnWake(id string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && t.state == woken {
		s.releaseTicket(t)
	}
}

// Slow marks a gate whose holder's call takes long. Tickets that wait for other
// gates too no longer wait for this one.
func (s *Scheduler) Slow(id, key string) {
	s.mu.Lock()
	defer s.unlock()
	if g := s.gates[key]; g != nil && g.holder != nil && g.holder.ID == id && !g.slow {
		g.slow = true
		for _, t := range slices.Clone(g.queue) {
			s.grant(t)
		}
	}
}

// Waiting is how many wait for their turn.
func (s *Scheduler) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tm := range s.teams {
		n += tm.waits
	}
	return n
}

// grant gives a ticket its turn, if it can have it, and wakes it.
func (s *Scheduler) grant(t *ticket) bool {
	has := s.tryGrant(t)
	if has {
		s.wake(t.Wake)
	}
	return has
}

// tryGrant gives a ticket its turn if everything that it needs is free.
func (s *Scheduler) tryGrant(t *ticket) bool {
	var wanted []string
	for _, key := range t.keys {
		if g := s.gates[key]; !g.slow {
			wanted = append(wanted, key)
		}
	}
	if len(wanted) == 0 {
		return false
	}
	for _, key := range wanted {
		g := s.gates[key]
		if g.holder != nil || g.reservedFor != nil && g.reservedFor != t && before(g.reservedFor, t) < 0 {
			return false
		}
	}
	tm := s.teamOf(t)
	if !s.hasPlace(tm) {
		if !t.ready {
			t.ready = true
			tm.ready = insert(tm.ready, t)
		}
		return false
	}
	s.dequeue(t)
	for _, key := range wanted {
		g := s.gateOf(key)
		g.holder = t
		g.countOvertaken(t)
	}
	t.acquired, t.state = wanted, woken
	tm.used++
	s.used++
	tm.waits--
	return true
}

// countOvertaken counts that a ticket overtook those before it.
func (g *accountGate) countOvertaken(by *ticket) {
	for _, t := range g.queue[:min(len(g.queue), scanned)] {
		if before(t, by) > 0 {
			return
		}
		t.passed++
		if t.passed > maxOvertaken && (g.reservedFor == nil || before(t, g.reservedFor) < 0) {
			g.reservedFor = t
		}
	}
}

// releaseGate frees a gate and offers it.
func (s *Scheduler) releaseGate(t *ticket, key string) {
	t.acquired = slices.DeleteFunc(t.acquired, func(k string) bool { return k == key })
	g := s.gates[key]
	g.holder, g.slow = nil, false
	s.offer(key)
}

// offer gives the first ticket that can use a free gate its turn.
func (s *Scheduler) offer(key string) {
	g := s.gates[key]
	if g == nil || g.holder != nil {
		return
	}
	// The search ends with the first that can have its turn.
	if !slices.ContainsFunc(g.queue[:min(len(g.queue), scanned)], s.grant) {
		s.prune(key)
	}
}

// releaseTicket ends a ticket and offers what it held to others.
func (s *Scheduler) releaseTicket(t *ticket) {
	delete(s.tickets, t.ID)
	s.used--
	if tm := s.teamOf(t); tm.used == 1 && tm.waits == 0 {
		delete(s.teams, t.Team)
	} else {
		tm.used--
	}
	for _, key := range slices.Clone(t.acquired) {
		s.releaseGate(t, key)
	}
	for next := s.nextReady(); next != nil; next = s.nextReady() {
		s.grant(next)
	}
}

// nextReady removes the first ticket that lacks only a place from the list of the
// team that holds the fewest, among those that may take one.
func (s *Scheduler) nextReady() *ticket {
	var least *team
	var name string
	for n, tm := range s.teams {
		if len(tm.ready) > 0 && s.hasPlace(tm) &&
			(least == nil || tm.used < least.used || tm.used == least.used && n < name) {
			least, name = tm, n
		}
	}
	if least == nil {
		return nil
	}
	t := least.ready[0]
	least.ready = slices.Delete(least.ready, 0, 1)
	t.ready = false
	return t
}

// hasPlace reports whether a team may take another place: neither its part nor
// what there is for all teams is used up. The latter is more than the places, so
// that many teams at once have one each.
func (s *Scheduler) hasPlace(tm *team) bool { return tm.used < s.limit() && s.used < 2*s.places }

// limit is how many places each active team may have.
func (s *Scheduler) limit() int { return max(s.places/(len(s.teams)+1), 1) }

func (s *Scheduler) teamOf(t *ticket) *team {
	tm := s.teams[t.Team]
	if tm == nil {
		tm = &team{}
		s.teams[t.Team] = tm
	}
	return tm
}

func (s *Scheduler) gateOf(key string) *accountGate {
	g := s.gates[key]
	if g == nil {
		g = &accountGate{}
		s.gates[key] = g
	}
	return g
}

// dequeue removes a ticket from every list on which it waits.
func (s *Scheduler) dequeue(t *ticket) {
	for _, key := range t.keys {
		g := s.gates[key]
		g.queue = remove(g.queue, t)
		if g.reservedFor == t {
			g.reservedFor = nil
			if i := slices.IndexFunc(g.queue, func(t *ticket) bool { return t.passed > maxOvertaken }); i >= 0 {
				g.reservedFor = g.queue[i]
			}
		}
		s.prune(key)
	}
	if t.ready {
		t.ready = false
		tm := s.teamOf(t)
		tm.ready = remove(tm.ready, t)
	}
}

// prune drops a gate without holder and waiters.
func (s *Scheduler) prune(key string) {
	if g := s.gates[key]; g != nil && g.holder == nil && len(g.queue) == 0 {
		delete(s.gates, key)
	}
}

// before orders tickets by when they are due, then by when they came.
func before(a, b *ticket) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.number, b.number))
}

func insert(list []*ticket, t *ticket) []*ticket {
	at, _ := slices.BinarySearchFunc(list, t, before)
	return slices.Insert(list, at, t)
}

func remove(list []*ticket, t *ticket) []*ticket {
	if at, found := slices.BinarySearchFunc(list, t, before); found {
		return slices.Delete(list, at, at+1)
	}
	return list
}
