// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"container/heap"
	"sync"
)

// Shares divides a number of places, such as the workers that may be busy with
// a call at once, between teams. A team that is alone gets half of them; with
// n teams at work each gets one part in n+1. The part that is left keeps a
// place free for whoever comes next, so that ten thousand posts of one team
// never make another team's single post wait for their calls to end.
//
// A team that already holds more than its share, because others came later,
// gets no more until it has given enough back.
type Shares struct {
	places int

	mu    sync.Mutex
	teams map[string]*share
	woken map[string]string
}

// share is what one team holds and waits for.
type share struct {
	held int
	// called counts the waiters that were woken and have not tried yet.
	called  int
	waiting queue
	byID    map[string]*entry
}

// NewShares divides a number of places, at least one.
func NewShares(places int) *Shares {
	return &Shares{places: max(places, 1), teams: map[string]*share{}, woken: map[string]string{}}
}

// TryTake takes a place for a team, if its share allows, and returns true; it
// never waits. Otherwise the waiter is remembered and woken when the team may
// try again.
func (s *Shares) TryTake(team string, w Waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered(w.ID)
	sh := s.teams[team]
	if sh == nil {
		sh = &share{byID: map[string]*entry{}}
		s.teams[team] = sh
	}
	if sh.held >= s.limit() {
		if sh.byID[w.ID] == nil {
			e := &entry{Waiter: w}
			sh.byID[w.ID] = e
			heap.Push(&sh.waiting, e)
		}
		return false
	}
	sh.held++
	if e := sh.byID[w.ID]; e != nil {
		heap.Remove(&sh.waiting, e.at)
		delete(sh.byID, w.ID)
	}
	return true
}

// Give returns a place of a team and wakes who may use it.
func (s *Shares) Give(team string) {
	s.mu.Lock()
	if sh := s.teams[team]; sh != nil && sh.held > 0 {
		sh.held--
		s.drop(team)
	}
	wakes := s.wakeAll()
	s.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// Pass is called when a waiter has had its turn: a wake that it did not use
// goes to the next one.
func (s *Shares) Pass(id string) {
	s.mu.Lock()
	var wakes []func()
	if s.answered(id) {
		wakes = s.wakeAll()
	}
	s.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// answered notes that a waiter that was woken has had its turn; false if it was
// not woken.
func (s *Shares) answered(id string) bool {
	team, ok := s.woken[id]
	if !ok {
		return false
	}
	delete(s.woken, id)
	if sh := s.teams[team]; sh != nil {
		sh.called--
		s.drop(team)
	}
	return true
}

// wakeAll wakes as many waiters as there are places for: when other teams have
// gone, a share may have grown by more than one.
func (s *Shares) wakeAll() (wakes []func()) {
	for {
		wake := s.wakeNext()
		if wake == nil {
			return wakes
		}
		wakes = append(wakes, wake)
	}
}

// limit is the share of each team at work.
func (s *Shares) limit() int {
	return max(s.places/(len(s.teams)+1), 1)
}

// wakeNext takes a waiter of the team that holds least, of those that may take
// a place, and returns what wakes it.
func (s *Shares) wakeNext() func() {
	limit := s.limit()
	least, name := limit, ""
	for team, sh := range s.teams {
		taken := sh.held + sh.called
		if sh.waiting.Len() > 0 && (taken < least || (taken == least && taken < limit && team < name)) {
			least, name = taken, team
		}
	}
	sh := s.teams[name]
	if sh == nil {
		return nil
	}
	e := sh.waiting[0]
	heap.Remove(&sh.waiting, 0)
	delete(sh.byID, e.ID)
	s.woken[e.ID] = name
	sh.called++
	return e.Wake
}

// drop forgets a team that holds, waits and was called for nothing.
func (s *Shares) drop(team string) {
	if sh := s.teams[team]; sh != nil && sh.held == 0 && sh.called == 0 && sh.waiting.Len() == 0 {
		delete(s.teams, team)
	}
}
