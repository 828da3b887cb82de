// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// Load is what people and programs ask of an installation.
type Load struct {
	// Teams is the number of teams, and PostsPerMonth the number of posts that all of them schedule in 30 days.
	Teams         int
	PostsPerMonth int
	// InCluster is how long finished posts stay in the cluster (retention.inCluster).
	InCluster time.Duration
	// Start and Days are the simulated time.
	Start time.Time
	Days  int
	// Seed selects the random numbers.
	Seed uint64
}

// The shares of posts, in percent. People write at work and choose round times, so that a fifth is due at nine o'clock
// sharp in the team's time zone.
const (
	atNine     = 20
	atFullHour = 30
	immediate  = 10
	twoTargets = 20
	pictures   = 10
	films      = 2
	// daysPerMonth is the length of a month here.
	daysPerMonth = 30
	// weekend is the number of posts on a Saturday or Sunday, compared with a working day.
	weekend = 50
)

const (
	pictureBytes = 200 << 10
	filmBytes    = 20 << 20
	// longestLead is how far ahead posts are scheduled, at most.
	longestLead = 72 * time.Hour
	// scheduledEach is the interval of teams with a PostSchedule that posts at nine every day.
	scheduledEach = 2
	// starterEach is the interval of teams on the starter plan, and importsEach that of teams that once import more
	// posts than their budget allows.
	starterEach, importsEach = 5, 100
	// headStart flattens the sizes of teams: the n-th team posts in proportion to 1/(n + headStart). Of a thousand, the
	// largest has 1.3 % of the posts.
	headStart = 20
)

// zones are the teams' time zones, with their shares in percent.
var zones = []struct {
	name  string
	share int
}{{"Europe/Berlin", 60}, {"America/New_York", 25}, {"Asia/Tokyo", 15}}

// request is a requested post.
type request struct {
	team *team
	// due is when it is to be published, and zero for an immediate post.
	due     time.Time
	targets int
	kind    kind
}

// kind is what a post contains.
type kind int

const (
	ofText kind = iota
	ofPicture
	ofFilm
)

// percent returns true in that share of the calls.
func percent(random *rand.Rand, share int) bool { return random.IntN(100) < share }

// addDay adds the requests for the posts that are due on one day.
func (s *simulation) addDay(day int) {
	begin := s.load.Start.AddDate(0, 0, day)
	share := 100.0
	if weekday := begin.Weekday(); weekday == time.Saturday || weekday == time.Sunday {
		share = weekend
	}
	// Five working days and a weekend have the same number of posts as seven average days.
	perDay := float64(s.load.PostsPerMonth) / daysPerMonth * share * 7 / (5*100 + 2*weekend)
	for _, tm := range s.teams {
		posts := perDay * tm.share
		n := int(posts)
		if s.random.Float64() < posts-float64(n) {
			n++
		}
		for range n {
			s.addPost(tm, begin)
		}
	}
}

func (s *simulation) addPost(tm *team, day time.Time) {
	r := request{team: tm, targets: 1}
	if percent(s.random, twoTargets) {
		r.targets = 2
	}
	switch at := s.random.IntN(100); {
	case at < films:
		r.kind = ofFilm
	case at < films+pictures:
		r.kind = ofPicture
	}
	due := s.dueOn(tm, day)
	if percent(s.random, immediate) {
		s.at(due, func() { s.create(&r) })
		return
	}
	r.due = due
	s.at(due.Add(-time.Hour-time.Duration(s.random.Int64N(int64(longestLead)))), func() { s.create(&r) })
}

// dueOn returns the time of a post on a day, in the team's time zone.
func (s *simulation) dueOn(tm *team, day time.Time) time.Time {
	const firstHour, lastHour = 7, 22
	hour := firstHour + s.random.IntN(lastHour-firstHour)
	local := func(hour, second int) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day(), hour, 0, second, 0, tm.zone)
	}
	switch at := s.random.IntN(100); {
	case at < atNine:
		return local(9, 0)
	case at < atNine+atFullHour:
		return local(hour, 0)
	default:
		return local(hour, s.random.IntN(int(time.Hour/time.Second))).Add(time.Duration(s.random.IntN(1000)) * time.Millisecond)
	}
}

// importPosts has a team import more scheduled posts than its budget allows.
func (s *simulation) importPosts(tm *team, day time.Time) {
	const days, excess = 30, 500
	for i := range int(tm.budget.UnfinishedPosts) + excess {
		r := request{team: tm, targets: 1, due: s.dueOn(tm, day.AddDate(0, 0, 1+i%days))}
		s.at(day.Add(time.Duration(i)*time.Second/4), func() { s.create(&r) })
	}
}
