// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"time"

	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

const (
	// crowdSize, groupFill and armedCalls are the manager's defaults: the number of posts due at the same time from
	// which they are armed, the number of posts in a group, and the number of their concurrent calls.
	crowdSize, groupFill, armedCalls = 50, 208, 1024
	// longestBacklog is the longest time that claims may wait for earlier writes. The manager reduces its concurrent
	// claims when they become slow (package dispatch).
	longestBacklog = 250 * time.Millisecond
)

// crowd contains the posts that are due at the same time.
type crowd struct {
	due     time.Time
	posts   []*post
	known   map[*post]bool
	claimed []armed
	opened  bool
}

// armed is a claimed post that waits for its group to be opened.
type armed struct {
	post    *post
	targets []int
}

// expect adds a post that waits for its scheduled time to the crowd for that time.
func (s *simulation) expect(p *post) {
	due := posting.Of(p.Post).Due()
	c := s.crowds[due.UnixMilli()]
	if !s.arms || c == nil && !due.After(s.now) {
		return
	}
	if c == nil {
		c = &crowd{due: due, known: map[*post]bool{}}
		s.crowds[due.UnixMilli()] = c
		s.at(due.Add(-delivery.ArmAhead(math.MaxInt32)), func() { s.wake(c) })
		s.at(due, func() { s.openAll(c) })
	}
	if !c.known[p] {
		c.known[p] = true
		c.posts = append(c.posts, p)
	}
}

// wakeEvery is the interval at which a crowd is checked.
const wakeEvery = time.Second

// wake arms a crowd's posts as soon as the crowd is large enough and near enough.
func (s *simulation) wake(c *crowd) {
	switch left := c.due.Sub(s.now); {
	case len(c.posts) >= crowdSize && left <= delivery.ArmAhead(len(c.posts)):
		for _, p := range c.posts {
			s.pass(p)
		}
	case left > wakeEvery:
		s.at(s.now.Add(wakeEvery), func() { s.wake(c) })
	}
}

func (s *simulation) isCrowded(p *post) bool {
	due := posting.Of(p.Post).Due()
	c := s.crowds[due.UnixMilli()]
	return c != nil && len(c.posts) >= crowdSize && due.Sub(s.now) <= delivery.ArmAhead(len(c.posts))
}

// arm claims a post ahead of its time. If too many writes are queued, catchUp reconciles the post later.
func (s *simulation) arm(p *post, f *delivery.Facts, targets []int) {
	if s.server.backlog(s.now) > longestBacklog {
		if s.behind = append(s.behind, p); len(s.behind) == 1 {
			s.at(s.server.free, s.catchUp)
		}
		return
	}
	due := posting.Of(p.Post).Due()
	c := s.crowds[due.UnixMilli()]
	s.enter(p, f, targets, fmt.Sprintf("%d-%d", due.UnixMilli(), len(c.claimed)/groupFill), delivery.ArmedWindow(due.Sub(s.now), s.settings.SendWindow))
	p.busy = true
	s.result.Armed++
	s.at(s.server.write(s.now), func() {
		if c.claimed = append(c.claimed, armed{p, targets}); c.opened {
			s.callArmed(p, targets)
		}
	})
}

// catchUp reconciles the posts that arm has deferred, as fast as writes are stored.
func (s *simulation) catchUp() {
	for len(s.behind) > 0 && s.server.backlog(s.now) <= longestBacklog {
		p := s.behind[0]
		s.behind = s.behind[1:]
		s.pass(p)
	}
	if len(s.behind) > 0 {
		s.at(s.server.free, s.catchUp)
	}
}

// openAll opens the groups of a crowd, with one write each.
func (s *simulation) openAll(c *crowd) {
	delete(s.crowds, c.due.UnixMilli())
	c.opened = true
	for from := 0; from < len(c.claimed); from += groupFill {
		group := c.claimed[from:min(from+groupFill, len(c.claimed))]
		s.at(s.server.write(s.now), func() {
			for _, a := range group {
				s.callArmed(a.post, a.targets)
			}
		})
	}
}

// callArmed makes an armed post's calls when it is its turn.
func (s *simulation) callArmed(p *post, targets []int) {
	t := &turn{accounts: p.accounts(targets), pool: &s.armedPlaces}
	t.run = func() {
		p.held = t
		s.call(p, targets)
	}
	t.enqueue()
}
