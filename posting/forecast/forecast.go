// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast predicts which uploads will finish after their posts are due. It does not read a clock or perform
// I/O.
package forecast

import (
	"cmp"
	"slices"
	"time"
)

// Upload is a target whose files are not on its platform yet.
type Upload struct {
	// Team is the team whose slots the upload uses.
	Team string
	// Due is the time of the post. From is the earliest time when the upload can start.
	Due, From time.Time
	// Duration is the time for which the upload needs a slot, from its start or, if it is running, from now.
	Duration time.Duration
	// UnderWay is true if the upload has a slot now.
	UnderWay bool
}

// Late reports for each upload whether it ends after its post is due. It assumes that no uploads are added and that
// each takes its Duration. managers is the number of processes that share the uploads; each has the given slots.
//
// The simulation hands out slots as dispatch.Scheduler does in each process: with n active teams, each may use 1/(n+1)
// of the slots. The team with the fewest slots goes first, and within a team the post that is due first.
func Late(uploads []Upload, places, managers int, now time.Time) []bool {
	s := &simulation{
		uploads: uploads, places: max(places, 1), managers: max(managers, 1), now: now, late: make([]bool, len(uploads)), teams: map[string]*team{},
	}
	for i := range uploads {
		if uploads[i].UnderWay {
			s.start(i)
		} else {
			s.pending = append(s.pending, i)
		}
	}
	slices.SortFunc(s.pending, func(a, b int) int { return uploads[a].From.Compare(uploads[b].From) })
	for s.step() {
	}
	return s.late
}

type simulation struct {
	uploads  []Upload
	places   int
	managers int
	now      time.Time
	late     []bool

	// pending holds the uploads that cannot start yet, ordered by From.
	pending []int
	// running holds the uploads that have a slot, ordered by when they end.
	running []running
	teams   map[string]*team
	// queue holds the teams with waiting uploads, in the order of their turns.
	queue []*team
}

type running struct {
	upload int
	ends   time.Time
}

// team holds a team's waiting uploads, ordered by when they are due.
type team struct {
	name    string
	slots   int
	waiting []int
}

// step gives free slots to waiting uploads, then advances to the next event. It returns false at the end.
func (s *simulation) step() bool {
	for len(s.pending) > 0 && !s.uploads[s.pending[0]].From.After(s.now) {
		s.enqueue(s.pending[0])
		s.pending = s.pending[1:]
	}
	for next := s.next(); next != nil; next = s.next() {
		upload := next.waiting[0]
		s.change(next, func() { next.waiting = next.waiting[1:] })
		s.start(upload)
	}
	switch {
	case len(s.running) == 0 && len(s.pending) == 0:
		return false
	case len(s.running) == 0 || len(s.pending) > 0 && s.uploads[s.pending[0]].From.Before(s.running[0].ends):
		s.now = s.uploads[s.pending[0]].From
	default:
		s.now = s.running[0].ends
		s.finish(s.running[0])
	}
	return true
}

func (s *simulation) enqueue(upload int) {
	tm := s.teamOf(upload)
	at, _ := slices.BinarySearchFunc(tm.waiting, upload, func(a, b int) int {
		return cmp.Or(s.uploads[a].Due.Compare(s.uploads[b].Due), cmp.Compare(a, b))
	})
	s.change(tm, func() { tm.waiting = slices.Insert(tm.waiting, at, upload) })
}

// next returns the team whose turn it is, or nil if no waiting team may use another slot.
func (s *simulation) next() *team {
	// If there are many teams, dispatch.Scheduler allows each of them one slot, up to twice its number of slots in total.
	if len(s.queue) == 0 || len(s.running) >= 2*s.places*s.managers {
		return nil
	}
	if first := s.queue[0]; first.slots < s.managers*max(s.places/(len(s.teams)+1), 1) {
		return first
	}
	return nil
}

func (s *simulation) start(upload int) {
	u := &s.uploads[upload]
	tm := s.teamOf(upload)
	s.change(tm, func() { tm.slots++ })
	r := running{upload: upload, ends: s.now.Add(max(u.Duration, 0))}
	s.late[upload] = r.ends.After(u.Due)
	at, _ := slices.BinarySearchFunc(s.running, r, func(a, b running) int {
		return cmp.Or(a.ends.Compare(b.ends), cmp.Compare(a.upload, b.upload))
	})
	s.running = slices.Insert(s.running, at, r)
}

func (s *simulation) finish(r running) {
	s.running = s.running[1:]
	tm := s.teamOf(r.upload)
	s.change(tm, func() { tm.slots-- })
	if tm.slots == 0 && len(tm.waiting) == 0 {
		delete(s.teams, tm.name)
	}
}

func (s *simulation) change(tm *team, do func()) {
	find := func() int {
		at, _ := slices.BinarySearchFunc(s.queue, tm, func(a, b *team) int {
			return cmp.Or(cmp.Compare(a.slots, b.slots), cmp.Compare(a.name, b.name))
		})
		return at
	}
	if len(tm.waiting) > 0 {
		at := find()
		s.queue = slices.Delete(s.queue, at, at+1)
	}
	do()
	if len(tm.waiting) > 0 {
		s.queue = slices.Insert(s.queue, find(), tm)
	}
}

func (s *simulation) teamOf(upload int) *team {
	name := s.uploads[upload].Team
	if s.teams[name] == nil {
		s.teams[name] = &team{name: name}
	}
	return s.teams[name]
}
