// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast tells which uploads will not be with their platforms when their posts are due. It is arithmetic: it reads
// no clock and does no I/O.
package forecast

import (
	"cmp"
	"slices"
	"time"
)

// Upload is one target whose files are not with its platform yet.
type Upload struct {
	// Team shares the places with the other teams.
	Team string
	// Due is when the post is to be published, and From when the upload may begin.
	Due, From time.Time
	// Duration is how long it holds a place: from its begin or, if it is under way, from now.
	Duration time.Duration
	// UnderWay is set if it holds a place now.
	UnderWay bool
}

// Late reports for each upload whether it ends after its post is due, if nothing is added and each takes as long as it says.
//
// The uploads share places as dispatch.Scheduler gives them: with n active teams each has one part in n+1, the team that
// holds the fewest comes first, and within a team the post that is due first.
func Late(uploads []Upload, places int, now time.Time) []bool {
	s := &simulation{uploads: uploads, places: max(places, 1), now: now, late: make([]bool, len(uploads)), teams: map[string]*team{}}
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

// simulation plays the coming hours.
type simulation struct {
	uploads []Upload
	places  int
	now     time.Time
	late    []bool

	// pending are the uploads that may not begin yet, by when they may.
	pending []int
	// running are those that hold a place, the first to end at the front.
	running []running
	teams   map[string]*team
	// queue are the teams that have uploads waiting, the first whose turn it is at the front.
	queue []*team
}

type running struct {
	upload int
	ends   time.Time
}

// team has the uploads that wait for a place, the first that is due at the front.
type team struct {
	name    string
	slots   int
	waiting []int
}

// step gives the places that are free to those that wait, and goes on to the next moment at which something changes. It
// returns false when all has ended.
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

// enqueue has an upload ask for a place.
func (s *simulation) enqueue(upload int) {
	tm := s.teamOf(upload)
	at, _ := slices.BinarySearchFunc(tm.waiting, upload, func(a, b int) int {
		return cmp.Or(s.uploads[a].Due.Compare(s.uploads[b].Due), cmp.Compare(a, b))
	})
	s.change(tm, func() { tm.waiting = slices.Insert(tm.waiting, at, upload) })
}

// next returns the team whose turn it is; nil if none that waits may have another place.
func (s *simulation) next() *team {
	// dispatch.Scheduler lets many teams have one place each, up to twice the places.
	if len(s.queue) == 0 || len(s.running) >= 2*s.places {
		return nil
	}
	if first := s.queue[0]; first.slots < max(s.places/(len(s.teams)+1), 1) {
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

// change changes a team, and puts it where it belongs among those that ask.
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
