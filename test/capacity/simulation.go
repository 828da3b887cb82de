// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/forecast"
	"github.com/herald-social/herald/posting/retention"
)

const day = 24 * time.Hour

// Broken selects a mistake that the checks must detect.
type Broken struct {
	// hasty treats a lost response as a refusal.
	hasty bool
	// forgetful loses the timers of waiting posts.
	forgetful bool
	// unlimited does not check budgets.
	unlimited bool
}

// simulation simulates an installation of Herald and its teams.
type simulation struct {
	agenda

	load      Load
	costs     Costs
	arms      bool
	broken    Broken
	settings  delivery.Settings
	policy    retention.Policy
	removals  int
	platforms platforms.Registry
	random    *rand.Rand
	server    *server
	result    *Result

	teams []*team
	// open contains the unfinished posts.
	open map[*post]bool
	// toUpload contains the scheduled posts whose uploads have not started.
	toUpload []*post
	// made counts requests, calls counts attempts, and accounts counts accounts.
	made, calls, accounts int
	// The slots: places for posts, armedPlaces for armed posts' calls, and uploads for uploads.
	places, armedPlaces, uploads pool
	// crowds contains the posts that will soon be due, by their time. behind contains those whose claims were deferred.
	crowds map[int64]*crowd
	behind []*post
	// leaves is the time at which the last post was removed from the cluster.
	leaves time.Time
	// expires counts the archived posts that expire on each day.
	expires map[int]int
}

// Simulate simulates an installation with the manager's defaults. If arms is true, crowds are claimed ahead.
func Simulate(load Load, costs Costs, arms bool, broken Broken) (*Result, error) {
	c := configv1alpha1.DefaultManager()
	s := &simulation{
		agenda: agenda{now: load.Start}, load: load, costs: costs, arms: arms, broken: broken, platforms: registry(), result: newResult(),
		settings: delivery.Settings{
			StartingDeadline: c.Delivery.StartingDeadline.Duration, LongestDelay: c.Delivery.LongestDelay.Duration,
			SendWindow: c.Delivery.SendWindow.Duration, ClockMargin: c.Delivery.ClockMargin.Duration, PrepareAhead: c.Delivery.PrepareAhead.Duration,
		},
		policy: retention.Policy{
			InCluster: load.InCluster, Archived: c.Retention.Archived.Duration, LeastInCluster: c.Retention.LeastInCluster.Duration,
		},
		removals: c.Retention.PostsPerSecond, random: rand.New(rand.NewPCG(load.Seed, load.Seed)), server: newServer(&costs, load.Start),
		open: map[*post]bool{}, crowds: map[int64]*crowd{}, expires: map[int]int{},
		places: pool{free: c.Concurrency.Posts}, armedPlaces: pool{free: armedCalls}, uploads: pool{free: c.Concurrency.Uploads},
	}
	if err := s.makeTeams(); err != nil {
		return nil, err
	}
	const ahead = 5
	for n := range load.Days {
		if n == 0 {
			for early := 1; early < ahead; early++ {
				s.addDay(early)
			}
		}
		s.addDay(n + ahead)
		if n == load.Days/3 {
			for i := 0; i < len(s.teams); i += importsEach {
				s.importPosts(s.teams[i], s.now)
			}
		}
		s.oneDay(n)
	}
	s.end()
	return s.result, nil
}

// oneDay simulates a day. Every hour, it forecasts late uploads, as the manager does for herald_late_uploads.
func (s *simulation) oneDay(n int) {
	begin := s.load.Start.Add(time.Duration(n) * day)
	for hour := range 24 {
		s.runUntil(begin.Add(time.Duration(hour) * time.Hour))
		s.forecast()
		// Each account is probed once an hour, and its status stores the time.
		s.server.rest += s.accounts
	}
	s.runUntil(begin.Add(day))
	s.result.addArchived(-s.expires[n])
	delete(s.expires, n)
	s.result.sample(n+1, s.now, s.server.stored)
}

// foreseen is the time ahead for which uploads are forecast.
const foreseen = 2 * time.Hour

func (s *simulation) forecast() {
	var uploads []forecast.Upload
	s.toUpload = slices.DeleteFunc(s.toUpload, func(p *post) bool { return !p.begun.IsZero() || p.Status.Finished })
	for _, p := range s.toUpload {
		if due := posting.Of(p.Post).Due(); due.After(s.now) && due.Sub(s.now) <= foreseen {
			from := later(s.facts(p).AheadFrom(0, preparedTTL), s.now)
			uploads = append(uploads, forecast.Upload{Team: p.team.Name, Due: due, From: from, Duration: s.duration(p)})
		}
	}
	for _, late := range forecast.Late(uploads, configv1alpha1.DefaultManager().Concurrency.Uploads, 1, s.now) {
		if late {
			s.result.ForecastLate++
		}
	}
}

// end checks that no post was lost: posts that are past their last retry must be finished.
func (s *simulation) end() {
	for p := range s.open {
		if due := posting.Of(p.Post).Due(); due.Add(s.settings.StartingDeadline + s.settings.LongestDelay).Before(s.now) {
			s.result.Lost++
			s.violatef("post %s, due at %s, is not finished", p.Name, due)
		}
	}
	s.result.Teams, s.result.Accounts = len(s.teams), s.accounts
	s.result.Writes, s.result.PeakSecond, s.result.PeakMinute = s.server.stored, s.server.second.peak, s.server.minute.peak
	s.result.Days = s.load.Days
}

// checkOutcome compares a finished post with the posts that its platforms show.
func (s *simulation) checkOutcome(p *post) {
	for i, times := range p.shown {
		state := posting.StateOf(posting.Of(p.Post).Target(i))
		switch {
		case state == v1alpha1.TargetPosted && times != 1, state == v1alpha1.TargetFailed && times > 0:
			s.result.Lost++
			s.violatef("target %d of post %s is %s, and was published %d times", i, p.Name, state, times)
		case state == v1alpha1.TargetFailed:
			s.result.Failed++
		case state == v1alpha1.TargetUndecided:
			s.result.Undecided++
		}
	}
}

func (s *simulation) checkBudget(tm *team) {
	if tm.posts > tm.budget.Posts || tm.bytes > tm.budget.PostBytes || tm.unfinished > tm.budget.UnfinishedPosts {
		s.violatef("%s has %d posts of %d bytes, %d of them unfinished, and its budget is %+v", tm.Name, tm.posts, tm.bytes, tm.unfinished, tm.budget)
	}
}

// violatef records a violated guarantee.
func (s *simulation) violatef(format string, args ...any) {
	s.result.Violations++
	if s.result.Violation == "" {
		s.result.Violation = s.now.UTC().Format(time.RFC3339) + ": " + fmt.Sprintf(format, args...)
	}
}
