// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"slices"
)

const (
	// scanned is the number of a free gate's waiters that are examined. Later ones move up as earlier ones get their turn.
	scanned = 64
	// maxOvertaken is the number of times that a ticket for several gates may be overtaken before the gates are reserved
	// for it.
	maxOvertaken = 32
)

// Scheduler gives a post its turn when both are free at once:
//
//   - A place. Places, such as workers for calls, are divided between teams: with n active teams each gets one part in
//     n+1, which leaves a place for the next team. Each active team may have at least one place, up to twice the
//     configured number in total.
//   - The gates of its accounts. At most one call that could publish runs per account. That keeps posts in order and
//     paces them, and no other post of the account confuses a lookup. A post takes all its gates together, so that one
//     write claims its targets and another records them. A gate with a slow call is left out, so that one account does
//     not delay the others.
//
// A waiting post does not hold places or gates, so there is no deadlock. When its turn comes, its place and gates are
// reserved and it is woken.
type Scheduler struct {
	lock

	places  int
	used    int
	armed   armedCalls
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
	// ready is set if the ticket lacks only a place and is in its team's list. passed counts how often it was overtaken.
	ready  bool
	passed int
	// held is set for an armed call whose group is not open.
	held bool
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
	// closed is set while another process may be calling the account.
	closed bool
	queue  []*ticket
	// armed is the number of armed calls in the queue.
	armed int
	// reservedFor is the first ticket in the queue that was overtaken too often.
	reservedFor *ticket
}

type team struct {
	used, waits int
	ready       []*ticket
}

// NewScheduler returns a scheduler with the given number of places, at least one.
func NewScheduler(places int) *Scheduler {
	return &Scheduler{places: max(places, 1), tickets: map[string]*ticket{}, gates: map[string]*accountGate{}, teams: map[string]*team{}}
}

// TryAcquire requests a place and the gates for keys, which must be distinct. It returns the gates it acquired; the
// caller must then call Done. If it returns none, the waiter is woken when its turn comes.
func (s *Scheduler) TryAcquire(w Waiter, keys []string) []string {
	s.mu.Lock()
	defer s.unlock()
	t := s.tickets[w.ID]
	if t != nil && t.state == woken {
		for _, key := range slices.Clone(t.acquired) {
			if !slices.Contains(keys, key) || s.gates[key].closed {
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
		s.addWaits(t, -1)
		for _, key := range t.keys {
			// The gate is no longer reserved for it.
			s.offer(key)
		}
		t = nil
	}
	if t == nil {
		s.issued++
		t = &ticket{Waiter: w, number: s.issued, keys: slices.Clone(keys)}
		s.tickets[t.ID] = t
		s.addWaits(t, 1)
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

// Release opens a gate that the waiter holds, once its call has returned.
func (s *Scheduler) Release(id, key string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && slices.Contains(t.acquired, key) {
		s.releaseGate(t, key)
	}
}

// Done frees the waiter's place and its remaining gates.
func (s *Scheduler) Done(id string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && t.state != waiting {
		s.releaseTicket(t)
	}
}

// ReturnWake must be called after each reconciliation of a waiter. If the waiter was woken but did not enter, its turn
// passes to others.
func (s *Scheduler) ReturnWake(id string) {
	s.mu.Lock()
	defer s.unlock()
	if t := s.tickets[id]; t != nil && t.state == woken {
		s.releaseTicket(t)
	}
}

// Slow marks a gate whose holder's call is slow. Tickets that also wait for other gates no longer wait for this one.
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

// Waiting returns the number of waiting tickets.
func (s *Scheduler) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting()
}

func (s *Scheduler) waiting() (n int) {
	for _, tm := range s.teams {
		n += tm.waits
	}
	return n
}

func (s *Scheduler) grant(t *ticket) bool {
	has := s.tryGrant(t)
	if has {
		s.wake(t.Wake)
	}
	return has
}

func (s *Scheduler) tryGrant(t *ticket) bool {
	if t.held {
		return false
	}
	var wanted []string
	for _, key := range t.keys {
		if g := s.gates[key]; !g.slow && !g.closed {
			wanted = append(wanted, key)
		}
	}
	if len(wanted) == 0 {
		return false
	}
	for _, key := range wanted {
		g := s.gates[key]
		if g.holder != nil || g.reservedFor != nil && g.reservedFor != t && before(g.reservedFor, t) < 0 || g.hasArmedBefore(t) {
			return false
		}
	}
	if !s.acquirePlace(t) {
		return false
	}
	s.dequeue(t)
	for _, key := range wanted {
		g := s.gateOf(key)
		g.holder = t
		g.recordOvertaken(t)
	}
	t.acquired, t.state = wanted, woken
	return true
}

// acquirePlace acquires a place for a ticket whose gates are free. If no place is free, it marks the ticket as ready
// for one.
func (s *Scheduler) acquirePlace(t *ticket) bool {
	if t.armed {
		return s.armed.acquire(t)
	}
	tm := s.teamOf(t)
	if !s.hasPlace(tm) {
		if !t.ready {
			t.ready = true
			tm.ready = insert(tm.ready, t)
		}
		return false
	}
	tm.used++
	s.used++
	tm.waits--
	return true
}

func (s *Scheduler) addWaits(t *ticket, n int) {
	if !t.armed {
		s.teamOf(t).waits += n
	}
}

// recordOvertaken records that a ticket overtook those in front of it.
func (g *accountGate) recordOvertaken(by *ticket) {
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

func (s *Scheduler) releaseGate(t *ticket, key string) {
	t.acquired = slices.DeleteFunc(t.acquired, func(k string) bool { return k == key })
	g := s.gates[key]
	g.holder, g.slow = nil, false
	s.offer(key)
}

func (s *Scheduler) offer(key string) {
	g := s.gates[key]
	if g == nil || g.holder != nil {
		return
	}
	if !slices.ContainsFunc(g.queue[:min(len(g.queue), scanned)], s.grant) {
		s.prune(key)
	}
}

func (s *Scheduler) releaseTicket(t *ticket) {
	delete(s.tickets, t.ID)
	if t.armed {
		s.releaseArmed(t)
		return
	}
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

// nextReady removes and returns the next ticket that lacks only a place: the first of the team with the fewest places.
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

// hasPlace reports whether a team may take another place: neither its share nor the total is exhausted. The total
// exceeds the number of places, so that many teams can have one each.
func (s *Scheduler) hasPlace(tm *team) bool { return tm.used < s.limit() && s.used < 2*s.places }

// limit is the number of places that each active team may have.
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

func (s *Scheduler) dequeue(t *ticket) {
	for _, key := range t.keys {
		g := s.gates[key]
		g.queue = remove(g.queue, t)
		if t.armed {
			g.armed--
		}
		if g.reservedFor == t {
			g.reservedFor = nil
			if i := slices.IndexFunc(g.queue, func(t *ticket) bool { return t.passed > maxOvertaken }); i >= 0 {
				g.reservedFor = g.queue[i]
			}
		}
		s.prune(key)
	}
	switch {
	case !t.ready:
	case t.armed:
		s.armed.unready(t)
	default:
		t.ready = false
		tm := s.teamOf(t)
		tm.ready = remove(tm.ready, t)
	}
}

func (s *Scheduler) prune(key string) {
	if g := s.gates[key]; g != nil && g.holder == nil && len(g.queue) == 0 {
		delete(s.gates, key)
	}
}

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
