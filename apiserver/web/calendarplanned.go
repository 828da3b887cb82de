// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/posting/recurrence"
)

// Limits on the schedules' upcoming posts that a calendar shows.
const (
	// plannedPerDay limits those that are shown per day.
	plannedPerDay = 2
	// plannedPerSchedule limits the times that are computed per schedule. It is enough for a month with several posts a
	// day.
	plannedPerSchedule = 200
)

// planned is a post that a schedule is going to create.
type planned struct {
	schedule string
	at       time.Time
}

// plannedPosts returns the posts that the team's schedules are going to create within the given bounds, by day. There
// are none for a user who is not allowed to see schedules.
func (s *Site) plannedPosts(v *visit, bounds []time.Time) ([][]planned, error) {
	days := make([][]planned, len(bounds)-1)
	last := bounds[len(bounds)-1]
	if !v.may.seeSchedules || !last.After(v.now) || v.team.Suspended() {
		return days, nil
	}
	all, err := s.Service.ListSchedules(v.Context(), v.caller)
	if err != nil {
		return nil, err
	}
	for i := range all {
		for _, at := range timesFrom(&all[i], v.now, bounds[0]) {
			day, _ := slices.BinarySearchFunc(bounds, at, func(bound, at time.Time) int {
				if bound.After(at) {
					return 1
				}
				return -1
			})
			if day > 0 && day < len(bounds) {
				days[day-1] = append(days[day-1], planned{all[i].Name, at})
			}
		}
	}
	for _, day := range days {
		slices.SortStableFunc(day, func(a, b planned) int { return a.at.Compare(b.at) })
	}
	return days, nil
}

// timesFrom returns the times of the posts that a schedule is going to create, starting at the later of two times.
func timesFrom(of *bridge.Schedule, now, first time.Time) []time.Time {
	if of.Rule == nil || of.Spec.Suspend || stateOfSchedule(of).tone == bad {
		return nil
	}
	if of.Spec.Count == nil && first.After(now) { // earlier posts do not have to be counted
		now = first
	}
	return recurrence.Upcoming(of.Rule, of.PostSchedule, now, plannedPerSchedule)
}

// plannedEntries shows the posts that schedules are going to create on a day.
func (v *visit) plannedEntries(day []planned) g.Node {
	if len(day) == 0 {
		return nil
	}
	shown := day[:min(len(day), plannedPerDay)]
	return h.Ul(h.Class("planned"),
		g.Map(shown, func(p planned) g.Node {
			return h.Li(h.Class("entry is-planned"), h.A(h.Href(v.path(pageSchedules)+"#"+p.schedule),
				h.Time(h.DateTime(p.at.UTC().Format(time.RFC3339)), h.Data("show", "time"), g.Text(p.at.In(v.zone).Format(clockForm))),
				g.Text(" "), h.Span(h.Class("entry-title"), g.Text(p.schedule)), h.Span(h.Class("hidden"), g.Text(", not created yet"))))
		}),
		g.If(len(day) > len(shown), h.Li(h.Class("soft"), g.Text("+"+strconv.Itoa(len(day)-len(shown))), h.Span(h.Class("hidden"), g.Text(" more of schedules, not created yet")))))
}
