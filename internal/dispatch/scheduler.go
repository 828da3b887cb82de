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
	// patience is how often others may overtake a ticket that waits for several
	// gates; then the gates are kept free for it.
	patience = 32
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
	// holds counts the places that are taken.
	holds   int
	tickets map[string]*ticket
	gates   map[string]*accountGate
	teams   map[string]*team
	issued  uint64
}

// ticket is a post that waits for its turn, was woken for it, or has it.
type ticket struct {
	Waiter
	number uint64
	keys   []string
	held   []string
	state  state
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
	// keptFor is the first in the queue that was overtaken too often.
	keptFor *ticket
}

type team struct {
	holds, waits int
	ready        []*ticket
}

// NewScheduler returns a scheduler with so many places, at least one.
func NewScheduler(places int) *Scheduler {
	return &Scheduler{places: max(places, 1), tickets: map[string]*ticket{}, gates: map[string]*accountGate{}, teams: map[string]*team{}}
}

// Enter asks for a place and the gates of keys, which are all different. It
// returns the gates that it took; the caller then calls Done. If it returns none,
// the waiter is woken when its turn has come.
func (s *Scheduler) Enter(w Waiter, keys []string) []string {
	s.mu.Lock()
	defer s.unlock()
	t := s.tickets[w.ID]
	if t != nil && t.state == woken {
		for _, key := range slices.Clone(t.held) {
			if !slices.Contains(keys, key) {
				s.open(t, key)
			}
		}
		if len(t.held) == 0 {
			s.leave(t)
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
		s.try(t)
	}
	if t.state != woken {
		return nil
	}
	t.state = entered
	return slices.Clone(t.held)
}

// Release opens a gate that the waiter holds: its call has ended.
func (s *Scheduler) Release(id, key string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && slices.Contains(t.held, key) {
		s.open(t, key)
	}
}

// Done frees the waiter's place and the gates that it still holds.
func (s *Scheduler) Done(id string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && t.state != waiting {
		s.leave(t)
	}
}

// Pass is called after each pass over a waiter: if it was woken and did not
// enter, others get its turn.
func (s *Scheduler) Pass(id string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && t.state == woken {
		s.leave(t)
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
			s.turn(t)
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

// turn gives a ticket its turn, if it can have it, and wakes it.
func (s *Scheduler) turn(t *ticket) bool {
	has := s.try(t)
	if has {
		s.wake(t.Wake)
	}
	return has
}

// try gives a ticket its turn if everything that it needs is free.
func (s *Scheduler) try(t *ticket) bool {
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
		if g.holder != nil || g.keptFor != nil && g.keptFor != t && before(g.keptFor, t) < 0 {
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
		g.overtaken(t)
	}
	t.held, t.state = wanted, woken
	tm.holds++
	s.holds++
	tm.waits--
	return true
}

// overtaken counts that a ticket overtook those before it.
func (g *accountGate) overtaken(by *ticket) {
	for _, t := range g.queue[:min(len(g.queue), scanned)] {
		if before(t, by) > 0 {
			return
		}
		t.passed++
		if t.passed > patience && (g.keptFor == nil || before(t, g.keptFor) < 0) {
			g.keptFor = t
		}
	}
}

// open frees a gate and offers it.
func (s *Scheduler) open(t *ticket, key string) {
	t.held = slices.DeleteFunc(t.held, func(k string) bool { return k == key })
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
	if !slices.ContainsFunc(g.queue[:min(len(g.queue), scanned)], s.turn) {
		s.tidy(key)
	}
}

// leave ends a ticket and offers what it held to others.
func (s *Scheduler) leave(t *ticket) {
	delete(s.tickets, t.ID)
	s.holds--
	if tm := s.teamOf(t); tm.holds == 1 && tm.waits == 0 {
		delete(s.teams, t.Team)
	} else {
		tm.holds--
	}
	for _, key := range slices.Clone(t.held) {
		s.open(t, key)
	}
	for next := s.nextReady(); next != nil; next = s.nextReady() {
		s.turn(next)
	}
}

// nextReady removes the first ticket that lacks only a place from the list of the
// team that holds the fewest, among those that may take one.
func (s *Scheduler) nextReady() *ticket {
	var least *team
	var name string
	for n, tm := range s.teams {
		if len(tm.ready) > 0 && s.hasPlace(tm) &&
			(least == nil || tm.holds < least.holds || tm.holds == least.holds && n < name) {
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
func (s *Scheduler) hasPlace(tm *team) bool { return tm.holds < s.limit() && s.holds < 2*s.places }

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
		if g.keptFor == t {
			g.keptFor = nil
			if i := slices.IndexFunc(g.queue, func(t *ticket) bool { return t.passed > patience }); i >= 0 {
				g.keptFor = g.queue[i]
			}
		}
		s.tidy(key)
	}
	if t.ready {
		t.ready = false
		tm := s.teamOf(t)
		tm.ready = remove(tm.ready, t)
	}
}

// tidy drops a gate without holder and waiters.
func (s *Scheduler) tidy(key string) {
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
