// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"cmp"
	"slices"
	"time"

	"github.com/herald-social/herald/posting/retention"
)

const (
	// latecomers is how late a post may be stored as finished after the moment that it
	// names: a result is tried to be written for a minute (delivery.recordFor), and
	// clocks differ.
	latecomers = 5 * time.Minute
	// reviewEvery is how often all days are looked at whose posts have all left, as far
	// as is known: for posts without a day, of an older version, and for any that were
	// missed.
	reviewEvery = time.Hour
	oneDay      = 24 * time.Hour
	// retryAfter is when a post is tried again that could not leave.
	retryAfter = time.Minute
)

// entry is a finished post and when its time in the cluster is over.
type entry struct {
	name string
	at   time.Time
}

// agenda is what is known of the finished posts of one team. The posts of the day whose
// time comes to its end are read once, or as often as that day may have got new ones. So a
// sweep costs what is due, and not what is there.
type agenda struct {
	team  string
	times retention.Times
	// due is sorted by time, and complete up to covered.
	due     []entry
	covered time.Time
	// unread is the first day of which some posts may not have been read; zero if none was.
	unread time.Time
	// reviewAt is when the days before are looked at again.
	reviewAt time.Time
	// overdueSince is when the time of a post was over that could not leave: it is due again later, and
	// late all the while.
	overdueSince map[string]time.Time
}

// newAgenda knows nothing yet.
func newAgenda(team string, times retention.Times) *agenda {
	return &agenda{team: team, times: times, overdueSince: map[string]time.Time{}}
}

// dayOf is the value of status.finishedOn of a post that was finished then.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// daysToRead returns the days that have to be read now: the one that the posts were finished on
// which become due now and, where posts leave within minutes, also the one before it for as
// long as some of its posts may not have been stored when it was read.
func (a *agenda) daysToRead(now time.Time) (days []string) {
	if now.Before(a.covered) {
		return nil
	}
	last := startOf(now.Add(-a.times.InCluster))
	first := a.unread
	if first.IsZero() {
		first = startOf(now.Add(-max(a.times.InCluster, latecomers)))
	}
	// What a process has missed that was stopped for longer is for the review.
	for day := later(first, last.Add(-oneDay)); day.Before(last); day = day.Add(oneDay) {
		days = append(days, dayOf(day))
	}
	return append(days, dayOf(last))
}

// merge enters what was read of the days, at a time before the read.
func (a *agenda) merge(read []entry, now time.Time) {
	a.add(read)
	last := startOf(now.Add(-a.times.InCluster))
	ends := last.Add(oneDay)
	// All of a day is stored when it has been over for a while.
	a.unread = startOf(now.Add(-latecomers))
	if ends.Before(a.unread) {
		a.unread = ends
	}
	// From the end of the day on, that of the next one is needed.
	a.covered = ends.Add(a.times.InCluster)
	if now.Before(ends.Add(latecomers)) {
		// What is finished from now on is not known, and due a whole time later.
		more := now.Add(a.times.InCluster - latecomers)
		if more.Before(a.covered) {
			a.covered = more
		}
	}
	if soonest := now.Add(sweepEvery); a.covered.Before(soonest) {
		a.covered = soonest
	}
}

// startOf is when the day of a time began.
func startOf(t time.Time) time.Time { return t.UTC().Truncate(oneDay) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// add enters posts that are not entered yet.
func (a *agenda) add(read []entry) {
	known := make(map[string]bool, len(a.due))
	for i := range a.due {
		known[a.due[i].name] = true
	}
	for _, e := range read {
		if !known[e.name] {
			a.due = append(a.due, e)
		}
	}
	slices.SortFunc(a.due, func(x, y entry) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.name, y.name)) })
}

// requeue enters posts that could not leave, to be tried at a time. Those that are entered already
// have to stay.
func (a *agenda) requeue(failed []entry, at time.Time) {
	before := map[string]bool{}
	for i := range a.due {
		before[a.due[i].name] = true
	}
	var entries []entry
	for _, e := range failed {
		if !before[e.name] {
			a.overdueSince[e.name] = e.at
			entries = append(entries, entry{e.name, at})
		}
	}
	a.add(entries)
}

// popDue takes the posts off the agenda that are due, so many at most. Their times are those at
// which they should have left.
func (a *agenda) popDue(now time.Time, most int) []entry {
	n := 0
	for n < len(a.due) && n < most && !now.Before(a.due[n].at) {
		n++
	}
	taken := slices.Clone(a.due[:n])
	a.due = slices.Delete(a.due, 0, n)
	for i := range taken {
		if over, ok := a.overdueSince[taken[i].name]; ok {
			taken[i].at = over
			delete(a.overdueSince, taken[i].name)
		}
	}
	return taken
}

// late is for how long the first post has been due; zero if none is.
func (a *agenda) late(now time.Time) (late time.Duration) {
	for _, e := range a.due {
		since, ok := a.overdueSince[e.name]
		if !ok {
			since = e.at
		}
		late = max(late, now.Sub(since))
	}
	return late
}
