// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"slices"
	"sync"
)

const (
	// scanned is how many of those that wait for a gate are looked at when it
	// comes free. Whoever stands further back comes closer with each turn.
	scanned = 64
	// patience is how often others may go first past one that waits for
	// several gates; then they are kept free for it.
	patience = 32
)

// Scheduler gives a post its turn when two things are free for it at once:
//
//   - A place. Places, such as the workers that may be busy with a call, are
//     divided between teams: a team that is alone gets half of them; with n
//     teams at work each gets one part in n+1. The part that is left keeps a
//     place free for whoever comes next. Each team at work may have one, up to
//     twice as many in all as there are places.
//   - The gates of its accounts. At most one call that could publish is under
//     way per account, which gives ordering, a simple pace, and look-ups that
//     are not confused by a neighbour. A post takes all its gates together, so
//     that its targets are claimed by one write and recorded by another; a gate
//     whose call has turned out to be slow is left out, so that one account
//     does not hold up the others.
//
// Nobody waits while holding anything, so nothing can lock up. Who has to wait
// is woken when its turn has come, with everything reserved for it.
type Scheduler struct {
	places int

	mu sync.Mutex
	// holds is how many places are taken in all.
	holds   int
	tickets map[string]*ticket
	gates   map[string]*accountGate
	teams   map[string]*team
	issued  uint64
}

// ticket is a post that waits for its turn, has been woken for it, or has it.
type ticket struct {
	Waiter
	number uint64
	keys   []string
	held   []string
	state  state
	// ready is set while the ticket stands in its team's list of those that
	// lack nothing but a place; passed counts who went first.
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
	// keptFor is the first in the queue that has lost its patience.
	keptFor *ticket
}

type team struct {
	holds, waits int
	ready        []*ticket
}

// NewScheduler makes a scheduler with so many places, at least one.
func NewScheduler(places int) *Scheduler {
	return &Scheduler{places: max(places, 1), tickets: map[string]*ticket{}, gates: map[string]*accountGate{}, teams: map[string]*team{}}
}

// Enter asks for a place and the gates of keys, which are all different. It
// returns the gates that were taken; none if the waiter is to be woken when
// its turn has come. Whoever gets some calls Done.
func (a *Scheduler) Enter(w Waiter, keys []string) []string {
	a.mu.Lock()
	var wakes []func()
	t := a.tickets[w.ID]
	if t != nil && t.state == woken {
		for _, key := range slices.Clone(t.held) {
			if !slices.Contains(keys, key) {
				wakes = append(wakes, a.open(t, key)...)
			}
		}
		if len(t.held) == 0 {
			wakes = append(wakes, a.leave(t)...)
			t = nil
		}
	}
	if t != nil && t.state == waiting && !slices.Equal(t.keys, keys) {
		a.dequeue(t)
		delete(a.tickets, t.ID)
		a.teamOf(t).waits--
		for _, key := range t.keys {
			// What was kept free for it is not any more.
			wakes = append(wakes, a.offer(key)...)
		}
		t = nil
	}
	if t == nil {
		a.issued++
		t = &ticket{Waiter: w, number: a.issued, keys: slices.Clone(keys)}
		a.tickets[t.ID] = t
		a.teamOf(t).waits++
		for _, key := range keys {
			a.gateOf(key).enqueue(t)
		}
		a.try(t)
	}
	var taken []string
	if t.state == woken {
		t.state = entered
		taken = slices.Clone(t.held)
	}
	a.mu.Unlock()
	call(wakes)
	return taken
}

// Release opens a gate that the waiter holds: its call has ended.
func (a *Scheduler) Release(id, key string) {
	a.mu.Lock()
	var wakes []func()
	if t := a.tickets[id]; t != nil && slices.Contains(t.held, key) {
		wakes = a.open(t, key)
	}
	a.mu.Unlock()
	call(wakes)
}

// Done gives back the waiter's place and the gates that it still holds.
func (a *Scheduler) Done(id string) {
	a.mu.Lock()
	var wakes []func()
	if t := a.tickets[id]; t != nil && t.state != waiting {
		wakes = a.leave(t)
	}
	a.mu.Unlock()
	call(wakes)
}

// Pass is called when a waiter was asked what it wants: if it was its turn and
// it did not enter, others have theirs.
func (a *Scheduler) Pass(id string) {
	a.mu.Lock()
	var wakes []func()
	if t := a.tickets[id]; t != nil && t.state == woken {
		wakes = a.leave(t)
	}
	a.mu.Unlock()
	call(wakes)
}

// Slow tells that the call of a waiter behind a gate takes long. Those that
// wait for other gates beside it wait for it no longer.
func (a *Scheduler) Slow(id, key string) {
	a.mu.Lock()
	var wakes []func()
	if g := a.gates[key]; g != nil && g.holder != nil && g.holder.ID == id && !g.slow {
		g.slow = true
		for _, t := range slices.Clone(g.queue) {
			if a.try(t) {
				wakes = append(wakes, t.Wake)
			}
		}
	}
	a.mu.Unlock()
	call(wakes)
}

func call(wakes []func()) {
	for _, wake := range wakes {
		wake()
	}
}

// try gives a ticket its turn if everything that it needs is free.
func (a *Scheduler) try(t *ticket) bool {
	var wanted []string
	for _, key := range t.keys {
		if g := a.gates[key]; !g.slow {
			wanted = append(wanted, key)
		}
	}
	if len(wanted) == 0 {
		return false
	}
	for _, key := range wanted {
		g := a.gates[key]
		if g.holder != nil || g.keptFor != nil && g.keptFor != t && before(g.keptFor, t) < 0 {
			return false
		}
	}
	tm := a.teamOf(t)
	if !a.hasPlace(tm) {
		if !t.ready {
			t.ready = true
			tm.ready = insert(tm.ready, t)
		}
		return false
	}
	a.dequeue(t)
	for _, key := range wanted {
		g := a.gateOf(key)
		g.holder = t
		g.overtaken(t)
	}
	t.held, t.state = wanted, woken
	tm.holds++
	a.holds++
	tm.waits--
	return true
}

// overtaken notes that a ticket went first past those that stand before it.
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

// open frees a gate and gives the first that can use it its turn.
func (a *Scheduler) open(t *ticket, key string) (wakes []func()) {
	t.held = slices.DeleteFunc(t.held, func(k string) bool { return k == key })
	g := a.gates[key]
	g.holder, g.slow = nil, false
	return a.offer(key)
}

// offer gives the first that can use a free gate its turn.
func (a *Scheduler) offer(key string) []func() {
	g := a.gates[key]
	if g == nil || g.holder != nil {
		return nil
	}
	for _, next := range g.queue[:min(len(g.queue), scanned)] {
		if a.try(next) {
			return []func(){next.Wake}
		}
	}
	a.tidy(key)
	return nil
}

// leave takes everything back from a ticket and offers it to others.
func (a *Scheduler) leave(t *ticket) (wakes []func()) {
	delete(a.tickets, t.ID)
	a.holds--
	if tm := a.teamOf(t); tm.holds == 1 && tm.waits == 0 {
		delete(a.teams, t.Team)
	} else {
		tm.holds--
	}
	for _, key := range slices.Clone(t.held) {
		wakes = append(wakes, a.open(t, key)...)
	}
	for {
		next := a.nextReady()
		if next == nil {
			break
		}
		if a.try(next) {
			wakes = append(wakes, next.Wake)
		}
	}
	return wakes
}

// nextReady takes the first of those that lack a place off the list of the team
// that holds least, of those that may take one.
func (a *Scheduler) nextReady() *ticket {
	var least *team
	var name string
	for n, tm := range a.teams {
		if len(tm.ready) > 0 && a.hasPlace(tm) &&
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

// hasPlace reports whether a team may take another place: its share is not used
// up, nor is what there is for all, which is more than the places so that many
// teams at once have one each.
func (a *Scheduler) hasPlace(tm *team) bool { return tm.holds < a.limit() && a.holds < 2*a.places }

// limit is the share of each team at work.
func (a *Scheduler) limit() int { return max(a.places/(len(a.teams)+1), 1) }

func (a *Scheduler) teamOf(t *ticket) *team {
	tm := a.teams[t.Team]
	if tm == nil {
		tm = &team{}
		a.teams[t.Team] = tm
	}
	return tm
}

func (a *Scheduler) gateOf(key string) *accountGate {
	g := a.gates[key]
	if g == nil {
		g = &accountGate{}
		a.gates[key] = g
	}
	return g
}

// dequeue takes a ticket off every list on which it waits.
func (a *Scheduler) dequeue(t *ticket) {
	for _, key := range t.keys {
		g := a.gates[key]
		g.queue = remove(g.queue, t)
		if g.keptFor == t {
			g.keptFor = nil
			if i := slices.IndexFunc(g.queue, func(t *ticket) bool { return t.passed > patience }); i >= 0 {
				g.keptFor = g.queue[i]
			}
		}
		a.tidy(key)
	}
	if t.ready {
		t.ready = false
		tm := a.teamOf(t)
		tm.ready = remove(tm.ready, t)
	}
}

// tidy forgets a gate that nobody holds or waits for.
func (a *Scheduler) tidy(key string) {
	if g := a.gates[key]; g != nil && g.holder == nil && len(g.queue) == 0 {
		delete(a.gates, key)
	}
}

func (g *accountGate) enqueue(t *ticket) { g.queue = insert(g.queue, t) }

// before orders tickets: the one that is due first, then the one that came
// first.
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
