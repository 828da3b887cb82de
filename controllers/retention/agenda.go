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
	// maxStoreDelay is the maximum delay between a post's finish time and the write that stores it: writing a result is
	// retried for a minute (delivery.recordFor in the configuration), and clocks differ.
	maxStoreDelay = 5 * time.Minute
	// reviewEvery is the interval between reviews of all days whose posts should all have left the cluster. A review finds
	// posts from an older version, which have no day, and posts that were missed.
	reviewEvery = time.Hour
	oneDay      = 24 * time.Hour
	retryAfter  = time.Minute
)

type entry struct {
	name string
	at   time.Time
}

// agenda lists a team's finished posts by the time at which they leave. A day's posts are read when the day becomes
// due, and again while more may be added. A sweep's cost depends on how many posts are due, not on how many are stored.
type agenda struct {
	team  string
	times retention.Times
	// due is sorted by time, and complete until covered.
	due     []entry
	covered time.Time
	// unread is the first day whose posts may not all have been read, or zero if no day was read.
	unread time.Time
	// reviewAt is the time of the next review of earlier days.
	reviewAt time.Time
	// overdueSince holds the original times of posts that could not leave. Their entries have a later time, for the retry,
	// but late counts from the original one.
	overdueSince map[string]time.Time
}

func newAgenda(team string, times retention.Times) *agenda {
	return &agenda{team: team, times: times, overdueSince: map[string]time.Time{}}
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// daysToRead returns the days to read now: the day whose posts become due and, if posts leave within minutes, the
// previous day too, as long as some of its posts may not have been stored when it was last read.
func (a *agenda) daysToRead(now time.Time) (days []string) {
	if now.Before(a.covered) {
		return nil
	}
	last := startOf(now.Add(-a.times.InCluster))
	first := a.unread
	if first.IsZero() {
		first = startOf(now.Add(-max(a.times.InCluster, maxStoreDelay)))
	}
	// The review handles days that were missed while the process was not running.
	for day := later(first, last.Add(-oneDay)); day.Before(last); day = day.Add(oneDay) {
		days = append(days, dayOf(day))
	}
	return append(days, dayOf(last))
}

// merge adds the posts that were read from the days. now is a time before the read.
func (a *agenda) merge(read []entry, now time.Time) {
	a.add(read)
	last := startOf(now.Add(-a.times.InCluster))
	ends := last.Add(oneDay)
	// A day is complete only some time after it ends.
	a.unread = startOf(now.Add(-maxStoreDelay))
	if ends.Before(a.unread) {
		a.unread = ends
	}
	// From the end of this day on, the next day is needed.
	a.covered = ends.Add(a.times.InCluster)
	if now.Before(ends.Add(maxStoreDelay)) {
		// Posts that finish from now on are unknown. They are due after the full retention time.
		more := now.Add(a.times.InCluster - maxStoreDelay)
		if more.Before(a.covered) {
			a.covered = more
		}
	}
	if soonest := now.Add(sweepEvery); a.covered.Before(soonest) {
		a.covered = soonest
	}
}

func startOf(t time.Time) time.Time { return t.UTC().Truncate(oneDay) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// add adds posts that are not on the agenda yet.
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

// requeue adds posts that could not leave, to be retried at the given time. It skips posts that are on the agenda
// already: their time in the cluster is not over.
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

// popDue removes up to most due posts from the agenda and returns them with their original times.
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
