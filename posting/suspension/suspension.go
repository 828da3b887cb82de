// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspension reckons with the times in which nothing of a team was published. It does
// no I/O and reads no clock.
package suspension

import (
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// most is how many suspensions a Team keeps, which is the schema's bound as well. Of more, the
// two that lie closest together become one: deadlines move by the time between them too.
const most = 16

// Update returns the suspensions of a team with what is so now: whether it is suspended. Those
// are dropped of which no deadline can depend any more, since the team was not suspended for
// longer than keep after them. The list that is given is not changed.
func Update(known []v1alpha1.Suspension, suspended bool, now time.Time, keep time.Duration) []v1alpha1.Suspension {
	list := slices.Clone(known)
	at := v1alpha1.NewTime(now)
	switch last := len(list) - 1; {
	case suspended && last >= 0 && list[last].Until == nil:
	case suspended && last >= 0 && !at.After(list[last].Until.Time):
		list[last].Until = nil // the same one, or one by a clock that was set back
	case suspended:
		list = append(list, v1alpha1.Suspension{From: at})
	case last >= 0 && list[last].Until == nil:
		if at.Before(list[last].From.Time) {
			at = list[last].From
		}
		list[last].Until = &at
	}
	list = prune(list, now, keep)
	for len(list) > most {
		list = mergeClosest(list)
	}
	return list
}

// prune drops the suspensions after which the team was not suspended for longer than keep.
func prune(list []v1alpha1.Suspension, now time.Time, keep time.Duration) []v1alpha1.Suspension {
	free, later := time.Duration(0), now
	for i := len(list) - 1; i >= 0; i-- {
		s := &list[i]
		if s.Until != nil && later.After(s.Until.Time) {
			free += later.Sub(s.Until.Time)
		}
		if free > keep {
			return slices.Clip(list[i+1:])
		}
		later = s.From.Time
	}
	return list
}

// mergeClosest makes one of the two suspensions that lie closest together.
func mergeClosest(list []v1alpha1.Suspension) []v1alpha1.Suspension {
	nearest := 0
	gap := func(i int) time.Duration { return list[i+1].From.Sub(list[i].Until.Time) }
	for i := range len(list) - 1 {
		if gap(i) < gap(nearest) {
			nearest = i
		}
	}
	list[nearest].Until = list[nearest+1].Until
	return slices.Delete(list, nearest+1, nearest+2)
}

// ShiftDeadline moves a deadline by the suspensions that have ended: by the time that the team was
// suspended from since on until the deadline, which moves meanwhile. It returns the end of the
// last one that moved it, from which on to reckon the next time; zero if none did.
func ShiftDeadline(deadline, since time.Time, list []v1alpha1.Suspension) (moved, by time.Time) {
	moved = deadline
	for i := range list {
		s := &list[i]
		if s.Until == nil || !s.Until.After(since) {
			continue
		}
		from := s.From.Time
		if from.Before(since) {
			from = since
		}
		if from.After(moved) {
			break
		}
		if length := s.Until.Sub(from); length > 0 {
			moved, by = moved.Add(length), s.Until.Time
		}
	}
	return moved, by
}

// OngoingSince is when the suspension began that lasts; zero if none does.
func OngoingSince(list []v1alpha1.Suspension) time.Time {
	if last := len(list) - 1; last >= 0 && list[last].Until == nil {
		return list[last].From.Time
	}
	return time.Time{}
}

// PruneAfter is how soon Enter drops all suspensions if the team is not suspended again; zero if
// there are none, or one lasts.
func PruneAfter(list []v1alpha1.Suspension, now time.Time, keep time.Duration) time.Duration {
	last := len(list) - 1
	if last < 0 || list[last].Until == nil {
		return 0
	}
	// Enter keeps those that are as old as keep, and times in a status have milliseconds.
	return max(keep-now.Sub(list[last].Until.Time), 0) + time.Second
}
