// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// Load describes the posts that users and programs create in an installation.
type Load struct {
	// Teams is the number of teams, and PostsPerMonth the total number of posts that they schedule in 30 days.
	Teams         int
	PostsPerMonth int
	// InCluster is the time that finished posts stay in the cluster (retention.inCluster).
	InCluster time.Duration
	// Start and Days define the simulated period.
	Start time.Time
	Days  int
	// Seed selects the random numbers.
	Seed uint64
}

// The shares of posts, in percent. Users choose round times during their working day, so a fifth of the posts is due at
// exactly nine o'clock in the team's time zone.
const (
	atNine     = 20
	atFullHour = 30
	immediate  = 10
	twoTargets = 20
	pictures   = 10
	films      = 2
	// daysPerMonth is the length of a simulated month.
	daysPerMonth = 30
	// weekend is the number of posts on a Saturday or Sunday as a percentage of a working day's.
	weekend = 50
)

const (
	pictureBytes = 200 << 10
	filmBytes    = 20 << 20
	// longestLead is the longest time that posts are scheduled ahead.
	longestLead = 72 * time.Hour
	// scheduledEach means that every second team has a PostSchedule that posts at nine every day.
	scheduledEach = 2
	// starterEach means that one team in five is on the starter plan, and importsEach that one in a hundred imports
	// more posts, once, than its budget allows.
	starterEach, importsEach = 5, 100
	// headStart makes team sizes more even: the number of posts of team n is proportional to 1/(n + headStart). The
	// largest of a thousand teams has 1.3 % of the posts.
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
	// due is the scheduled time, or zero for an immediate post.
	due     time.Time
	targets int
	kind    kind
}

// kind is the kind of content in a post.
type kind int

const (
	ofText kind = iota
	ofPicture
	ofFilm
)

// percent returns true for the given percentage of calls.
func percent(random *rand.Rand, share int) bool { return random.IntN(100) < share }

// addDay schedules the requests for the posts that are due on a day.
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

// dueOn returns a random time for a post on a day, in the team's time zone.
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

// importPosts makes a team import more scheduled posts than its budget allows.
func (s *simulation) importPosts(tm *team, day time.Time) {
	const days, excess = 30, 500
	for i := range int(tm.budget.UnfinishedPosts) + excess {
		r := request{team: tm, targets: 1, due: s.dueOn(tm, day.AddDate(0, 0, 1+i%days))}
		s.at(day.Add(time.Duration(i)*time.Second/4), func() { s.create(&r) })
	}
}
