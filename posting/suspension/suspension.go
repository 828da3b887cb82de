// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspension keeps a team's list of suspensions and shifts deadlines by them. It does not perform I/O or read a
// clock.
package suspension

import (
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// most is the maximum number of suspensions of a Team, as in the schema. If there are more, the two that are closest
// together are merged; deadlines then also shift by the time between them.
const most = 16

// Update returns a team's suspensions, updated according to whether it is suspended now. It drops those that ended more
// than keep before the next one or now, since no deadline can depend on them. It does not modify its argument.
func Update(known []v1alpha1.Suspension, suspended bool, now time.Time, keep time.Duration) []v1alpha1.Suspension {
	list := slices.Clone(known)
	at := v1alpha1.NewTime(now)
	switch last := len(list) - 1; {
	case suspended && last >= 0 && list[last].Until == nil:
	case suspended && last >= 0 && !at.After(list[last].Until.Time):
		list[last].Until = nil // the same suspension, or a clock that was set back
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

// ShiftDeadline moves a deadline by the total length of the suspensions between since and the deadline, which itself
// moves in the process. Only suspensions that have ended count. It also returns the end of the last suspension that it
// applied, which should be passed as since the next time, or zero.
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

// OngoingSince returns the beginning of the current suspension, or zero if there is none.
func OngoingSince(list []v1alpha1.Suspension) time.Time {
	if last := len(list) - 1; last >= 0 && list[last].Until == nil {
		return list[last].From.Time
	}
	return time.Time{}
}

// PruneAfter returns the time after which Update drops all suspensions if the team is not suspended again. It returns
// zero if there are none, or if one is ongoing.
func PruneAfter(list []v1alpha1.Suspension, now time.Time, keep time.Duration) time.Duration {
	last := len(list) - 1
	if last < 0 || list[last].Until == nil {
		return 0
	}
	// Update keeps suspensions that are exactly as old as keep, and status times have milliseconds.
	return max(keep-now.Sub(list[last].Until.Time), 0) + time.Second
}
