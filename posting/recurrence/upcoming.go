// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Upcoming returns the times of the next posts that a schedule would create from now on, at most the given number. It
// ignores suspensions.
func Upcoming(rule *Rule, s *v1alpha1.PostSchedule, now time.Time, most int) []time.Time {
	d := decider{rule: rule, Facts: Facts{Schedule: s, Now: now}}
	if count := s.Spec.Count; count != nil {
		most = min(most, int(*count-s.Status.Posts))
	}
	from := d.decided()
	if from.Before(now) {
		from = now
	}
	var times []time.Time
	for len(times) < most {
		from = d.after(from)
		if from.IsZero() {
			break
		}
		times = append(times, from)
	}
	return times
}

// Selected returns the time on the clock that the rule selects for an occurrence, as a time in UTC. If clocks skip that
// time, they show another one at the occurrence.
func (r *Rule) Selected(occurrence time.Time) time.Time {
	wall := r.wall(occurrence)
	if r.cron.Next(wall.Add(-time.Second)).Equal(wall) {
		return wall
	}
	return wall.Add(-r.skipped(occurrence))
}
