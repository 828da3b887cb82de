// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"
)

// Result contains the counts of a simulation.
type Result struct {
	Teams, Accounts, Days int
	// Accepted posts were stored; OverBudget and OverPlan were refused.
	Accepted, OverBudget, OverPlan int
	// Published, Failed and Undecided count targets. Lookups counts lookups after lost answers, and Expired counts
	// claims whose call could not start in time.
	Published, Failed, Undecided, Lookups, Expired int
	// Armed counts the posts that were claimed ahead.
	Armed int
	// Uploads counts all uploads, LateUploads those that ended after their post was due, and ForecastLate those that
	// were forecast to.
	Uploads, LateUploads, ForecastLate int
	// Archived posts have left the cluster; Kept posts never do.
	Archived, Kept int
	// Writes counts writes to the Kubernetes API. PeakSecond and PeakMinute are the highest numbers of urgent writes in
	// a second and in a minute.
	Writes, PeakSecond, PeakMinute int
	// Twice, Lost and Violations must be zero. Violation describes the first violation.
	Twice, Lost, Violations int
	Violation               string
	// Paused counts the targets that waited for the end of a rate limit that their platform announced.
	Paused int
	// Lateness counts the first calls for all other targets, by the time between the scheduled time and the start of
	// the call.
	Lateness spread
	// Samples are taken at the end of each month.
	Samples []Sample
	// MostUnfinished and MostObjects are the largest numbers of unfinished posts and of all posts in the cluster.
	MostUnfinished, MostObjects int

	inCluster, inWork, inArchive, records, lastWrites int
	recordBytes                                       int64
	instants                                          map[int64]*instant
}

// Sample is the state at the end of a month.
type Sample struct {
	Day, Objects, Unfinished, Archived, Writes int
}

// instant describes the posts that are due at the same time.
type instant struct {
	posts int
	last  time.Duration
}

func newResult() *Result { return &Result{Lateness: spread{}, instants: map[int64]*instant{}} }

func (r *Result) objects(n int) {
	r.inCluster += n
	r.MostObjects = max(r.MostObjects, r.inCluster)
	if n < 0 {
		r.inArchive -= n
	}
}

func (r *Result) unfinished(n int) {
	r.inWork += n
	r.MostUnfinished = max(r.MostUnfinished, r.inWork)
}

func (r *Result) addArchived(n int) { r.inArchive += n }

func (r *Result) instant(due time.Time) *instant {
	at := r.instants[due.UnixMilli()]
	if at == nil {
		at = &instant{}
		r.instants[due.UnixMilli()] = at
	}
	return at
}

func (r *Result) late(due, now time.Time) {
	by := max(now.Sub(due), 0)
	r.Lateness[by.Milliseconds()]++
	if at := r.instants[due.UnixMilli()]; at != nil {
		at.last = max(at.last, by)
	}
}

// sample takes a sample at the end of a month. It drops past instants that had few posts.
func (r *Result) sample(days int, now time.Time, writes int) {
	for at, of := range r.instants {
		if of.posts < crowdSize && at < now.UnixMilli() {
			delete(r.instants, at)
		}
	}
	if days%daysPerMonth == 0 {
		r.Samples = append(r.Samples, Sample{Day: days, Objects: r.inCluster, Unfinished: r.inWork, Archived: r.inArchive, Writes: writes - r.lastWrites})
		r.lastWrites = writes
	}
}

// RecordBytes returns the mean size of an archived record.
func (r *Result) RecordBytes() int64 { return r.recordBytes / int64(max(r.records, 1)) }

// Largest returns the instants, largest first.
func (r *Result) Largest() (all []instant) {
	for _, of := range r.instants {
		all = append(all, *of)
	}
	slices.SortFunc(all, func(a, b instant) int {
		if a.posts != b.posts {
			return b.posts - a.posts
		}
		return int(b.last - a.last)
	})
	return all
}

// spread counts durations in milliseconds.
type spread map[int64]int

// Quantile returns the smallest duration that the share q of all durations does not exceed.
func (s spread) Quantile(q float64) time.Duration {
	var keys []int64
	total := 0
	for ms, n := range s {
		keys = append(keys, ms)
		total += n
	}
	slices.Sort(keys)
	left := int(math.Ceil(q * float64(total)))
	for _, ms := range keys {
		if left -= s[ms]; left <= 0 {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return 0
}
