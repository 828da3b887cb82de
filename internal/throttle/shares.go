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
	held    int
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
	delete(s.woken, w.ID)
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
	wake := s.wakeNext()
	s.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Pass is called when a waiter has had its turn: a wake that it did not use
// goes to the next one.
func (s *Shares) Pass(id string) {
	s.mu.Lock()
	var wake func()
	if _, ok := s.woken[id]; ok {
		delete(s.woken, id)
		wake = s.wakeNext()
	}
	s.mu.Unlock()
	if wake != nil {
		wake()
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
		if sh.waiting.Len() > 0 && (sh.held < least || (sh.held == least && sh.held < limit && team < name)) {
			least, name = sh.held, team
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
	s.drop(name)
	return e.Wake
}

// drop forgets a team that holds and waits for nothing.
func (s *Shares) drop(team string) {
	if sh := s.teams[team]; sh != nil && sh.held == 0 && sh.waiting.Len() == 0 {
		delete(s.teams, team)
	}
}
