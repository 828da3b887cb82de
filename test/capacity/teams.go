// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/recurrence"
	"github.com/herald-social/herald/posting/retention"
	"github.com/herald-social/herald/posting/usage"
)

// team is a team with its use of the budget and the plan.
type team struct {
	*v1alpha1.Team

	zone *time.Location
	// share is the team's share of all posts.
	share    float64
	budget   plan.Budget
	limits   plan.Limits
	times    retention.Times
	accounts map[string]*account
	names    []string
	// posts, bytes and unfinished are the amounts in the cluster.
	posts, bytes, unfinished int64
	// counters contains the Usages by period.
	counters map[string]*v1alpha1.Usage
	// shownOnX counts the posts published on X, by month.
	shownOnX map[string]int
	rule     *recurrence.Rule
	schedule *v1alpha1.PostSchedule
}

// account is a connected account. It publishes one post at a time.
type account struct {
	*v1alpha1.Connection

	busy    bool
	waiting []*turn
	// pausedUntil is the end of the last rate limit that its platform announced.
	pausedUntil time.Time
}

// platformsOf lists the platforms that a team's accounts are distributed over. A team has at least one account on each.
var platformsOf = []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook, v1alpha1.PlatformInstagram}

// perAccount is a team's average number of posts per account and day.
const perAccount = 8

func (s *simulation) makeTeams() error {
	var sum float64
	for i := range s.load.Teams {
		sum += 1 / float64(i+headStart)
	}
	for i := range s.load.Teams {
		tm, err := s.makeTeam(i, 1/float64(i+headStart)/sum)
		if err != nil {
			return err
		}
		s.teams = append(s.teams, tm)
	}
	return nil
}

func (s *simulation) makeTeam(i int, share float64) (*team, error) {
	name := fmt.Sprintf("team-%d", i)
	tm := &team{
		Team: &v1alpha1.Team{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(s.load.Start)},
			Spec: v1alpha1.TeamSpec{
				Namespace: name, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive},
			},
		},
		share: share, accounts: map[string]*account{}, counters: map[string]*v1alpha1.Usage{}, shownOnX: map[string]int{},
	}
	// The smallest teams are on the starter plan.
	if i >= s.load.Teams-s.load.Teams/starterEach {
		tm.Spec.Subscription.Plan = v1alpha1.PlanStarter
	}
	tm.budget, tm.limits, tm.times = plan.BudgetOf(tm.Team), plan.LimitsOf(tm.Team), s.policy.Of(tm.Team)
	zone := zones[0].name
	for at, j := s.random.IntN(100), 0; j < len(zones); j++ {
		if zone = zones[j].name; at < zones[j].share {
			break
		}
		at -= zones[j].share
	}
	var err error
	if tm.zone, err = time.LoadLocation(zone); err != nil {
		return nil, err
	}
	tm.connect(max(len(platformsOf), int(share*float64(s.load.PostsPerMonth)/daysPerMonth/perAccount)))
	s.accounts += len(tm.accounts)
	if i%scheduledEach == 0 {
		return tm, s.addSchedule(tm, zone)
	}
	return tm, nil
}

// connect adds accounts, distributed evenly over the platforms.
func (tm *team) connect(accounts int) {
	for i := range accounts {
		platform := platformsOf[i%len(platformsOf)]
		id := fmt.Sprintf("%s-%d", platform, i)
		c := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: tm.Name, Name: id, UID: types.UID(tm.Name + "/" + id)}}
		c.Spec = v1alpha1.ConnectionSpec{Platform: platform, AccountID: tm.Name + "-" + id}
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected}}
		tm.accounts[c.Name] = &account{Connection: c}
		tm.names = append(tm.names, c.Name)
	}
}

// addSchedule adds a PostSchedule for nine o'clock every day to a team.
func (s *simulation) addSchedule(tm *team, zone string) (err error) {
	if tm.rule, err = recurrence.Parse("0 9 * * *", zone); err != nil {
		return err
	}
	tm.schedule = &v1alpha1.PostSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: tm.Name, Name: "daily", CreationTimestamp: metav1.NewTime(s.load.Start)},
		Spec: v1alpha1.PostScheduleSpec{
			Texts:    []string{caption, caption + " again"},
			Template: v1alpha1.PostTemplate{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: tm.names[1]}}}},
		},
	}
	s.at(s.load.Start, func() { s.recur(tm) })
	return nil
}

// recur creates the posts that are due according to the team's schedule, as the PostSchedule controller does.
func (s *simulation) recur(tm *team) {
	d := recurrence.Decide(tm.rule, recurrence.Facts{Schedule: tm.schedule, StartingDeadline: s.settings.StartingDeadline, Now: s.now})
	for _, occurrence := range d.Create {
		s.admit(tm, recurrence.PostOf(tm.schedule, occurrence))
		status := &tm.schedule.Status
		status.Posts, status.LastScheduledTime = status.Posts+1, v1alpha1.NewTimePtr(occurrence.At)
		s.server.write(s.now)
	}
	if !d.Wake.IsZero() {
		s.at(d.Wake, func() { s.recur(tm) })
	}
}

// counter returns the Usage for the spec's period, and creates it if it is missing.
func (tm *team) counter(spec v1alpha1.UsageSpec) *v1alpha1.Usage {
	if tm.counters[spec.Period] == nil {
		tm.counters[spec.Period] = &v1alpha1.Usage{Spec: spec}
	}
	return tm.counters[spec.Period]
}

// countersOf calls f with each Usage that counts the post.
func (s *simulation) countersOf(tm *team, post *v1alpha1.Post, f func(u *v1alpha1.Usage, limit int)) {
	if tm.limits == (plan.Limits{}) {
		return
	}
	for _, spec := range tm.limits.Counters(post, tm.connection, s.settings.StartingDeadline) {
		f(tm.counter(spec), tm.limits.Max(&spec))
	}
}

func (tm *team) connection(name string) *v1alpha1.Connection {
	if a := tm.accounts[name]; a != nil {
		return a.Connection
	}
	return nil
}

// reserve reserves a new post's use of the plan. It returns false if the plan does not allow the post.
func (s *simulation) reserve(tm *team, post *v1alpha1.Post) bool {
	allowed := true
	s.countersOf(tm, post, func(u *v1alpha1.Usage, limit int) {
		uses := plan.Uses(&u.Spec, post, tm.connection, s.settings.StartingDeadline)
		allowed = allowed && len(usage.Reserve(u, usage.Reservation{Post: post.Name, Uses: uses}, limit, s.now)) == 0
	})
	return allowed
}
