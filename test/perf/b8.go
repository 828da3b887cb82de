// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// B8's goals: the 99th percentile of the response time, in milliseconds, and the apiserver's memory for any number of
// archived posts, in MiB.
const (
	goalB8    = 20.0
	goalB8MiB = 64.0
)

const (
	// archiveInFlight is the number of concurrent requests for the archive's pages.
	archiveInFlight = 4
	// scattered is the number of pages, spread over the whole list, that are requested in turn, so most must be read
	// from the store.
	scattered = 400
)

// archiveListing is B8's result for one way of spreading archived posts over teams.
type archiveListing struct {
	Teams int `json:"teams"`
	Posts int `json:"posts"`
	// P99 is the P99 of the slowest kind of page, each the median of its rounds.
	P99   float64                 `json:"p99_ms"`
	Pages map[string]bare.Latency `json:"pages_ms"`
	// MiBMore is the peak resident memory after the requests, minus the peak of an apiserver without archived posts
	// after the same requests.
	MiBMore float64 `json:"mib_more"`
}

type b8 struct{ *session }

// runB8 lists the archived posts of one team that has all of them, and of many teams that share them.
func runB8(ctx context.Context, s *session, r *report, id string) error {
	b := &b8{s}
	var teams []stack.Team
	err := s.prepare(ctx, func() (err error) {
		many := max(s.scaled(manyTeams), 2)
		s.logf("  B8: creating %d teams", many)
		teams, err = s.stack.MakeTeams(ctx, "kept", many)
		return err
	})
	if err != nil {
		return err
	}
	one, err := b.measure(ctx, teams[:1])
	if err != nil {
		return err
	}
	shared, err := b.measure(ctx, teams[1:])
	if err != nil {
		return err
	}
	p99, more := max(one.P99, shared.P99), max(one.MiBMore, shared.MiBMore)
	r.add(id, map[string]any{
		"p99_ms": p99, "goal": goalB8, "met": p99 <= goalB8, "mib_more": more, "mib_goal": goalB8MiB, "mib_met": more <= goalB8MiB,
		"in_flight": archiveInFlight, "one_team": one, "many_teams": shared,
	})
	for _, l := range []archiveListing{one, shared} {
		r.limit(id, fmt.Sprintf("lists of %d archived posts in %d team(s), 99th percentile of the slowest page", l.Posts, l.Teams),
			fmt.Sprintf("%.1f ms", l.P99), fmt.Sprintf("≤ %.0f ms", goalB8), l.P99 <= goalB8)
		r.limit("", "apiserver's resident memory for all posts", fmt.Sprintf("%.0f MiB", l.MiBMore), fmt.Sprintf("≤ %.0f MiB", goalB8MiB), l.MiBMore <= goalB8MiB)
	}
	return nil
}

// measure archives posts and measures how the apiserver lists them. It first measures the apiserver without them.
func (b *b8) measure(ctx context.Context, teams []stack.Team) (l archiveListing, err error) {
	posts := max(b.b8Posts/len(teams), 1)
	l = archiveListing{Teams: len(teams), Posts: posts * len(teams), Pages: map[string]bare.Latency{}}
	without, err := b.serve(ctx, teams, posts, nil)
	if err != nil {
		return l, err
	}
	b.logf("  B8: archiving %d posts in %d team(s)", l.Posts, l.Teams)
	files, err := b.stack.Store()
	if err != nil {
		return l, err
	}
	writer := lists.NewWriter(files, clock.RealClock{})
	for _, team := range teams {
		if err := writer.Add(ctx, lists.Team{Namespace: team.Namespace, Name: team.Namespace}, archivedPosts(posts)); err != nil {
			return l, err
		}
	}
	with, err := b.serve(ctx, teams, posts, &l)
	if err != nil {
		return l, err
	}
	l.MiBMore = measure.Rounded((with-without)/(1<<20), 1)
	b.logf("  B8: resident memory for the archived posts: %.1f MiB", l.MiBMore)
	for _, team := range teams {
		err = errors.Join(err, writer.Remove(ctx, lists.Team{Namespace: team.Namespace, Name: team.Namespace}))
	}
	return l, err
}

// archivedPosts returns posts to X and Threads, of which one in ten failed on Threads. One post in a thousand goes only
// to Facebook, and failed.
func archivedPosts(n int) []lists.Entry {
	at := time.Now().Add(-90 * 24 * time.Hour)
	target := func(p v1alpha1.Platform, s v1alpha1.PostPhase) lists.Target {
		return lists.Target{Platform: p, Status: s}
	}
	good := lists.Kind{Status: v1alpha1.PhasePosted, Category: v1alpha1.CategoryText, Targets: []lists.Target{
		target(v1alpha1.PlatformX, v1alpha1.PhasePosted), target(v1alpha1.PlatformThreads, v1alpha1.PhasePosted),
	}}
	bad, rare := good, good
	bad.Status, bad.Targets = v1alpha1.PhaseFailed, []lists.Target{good.Targets[0], target(v1alpha1.PlatformThreads, v1alpha1.PhaseFailed)}
	rare.Status, rare.Targets = v1alpha1.PhaseFailed, []lists.Target{target(v1alpha1.PlatformFacebook, v1alpha1.PhaseFailed)}
	out := make([]lists.Entry, n)
	for i := range out {
		kind := good
		switch {
		case i%1000 == 0:
			kind = rare
		case i%10 == 0:
			kind = bad
		}
		when := at.Add(time.Duration(i) * 90 * 24 * time.Hour / time.Duration(n))
		out[i] = lists.Entry{
			Kind: kind, Name: fmt.Sprintf("p%025d", i), UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i),
			Title: fmt.Sprintf("The first thirty characters %02d", i%100), DisplayAt: when, FinishedAt: when, Bytes: 1500,
		}
	}
	return out
}

// countOfArchived returns the number of archived posts that match a filter, out of the given number.
func countOfArchived(posts int, rare bool) int {
	if rare {
		return (posts + 999) / 1000
	}
	return posts
}

// serve starts only the apiserver, requests every kind of page, and returns its resident memory after that, in bytes.
// It stores the latencies in l. If l is nil, no post is archived and only first pages are requested.
func (b *b8) serve(ctx context.Context, teams []stack.Team, posts int, l *archiveListing) (resident float64, err error) {
	apiserver, err := b.stack.StartAPIServer(ctx)
	defer func() { err = errors.Join(err, b.stack.StopHerald()) }()
	if err != nil {
		return 0, err
	}
	for _, kind := range []struct {
		name, query string
		rare        bool
	}{{"all", "", false}, {"rare", "&status=failed&platform=facebook", true}} {
		last := max((countOfArchived(posts, kind.rare)+pageSize-1)/pageSize, 1)
		pages := map[string][]int{"first": {1}, "middle": {(last + 1) / 2}, "last": {last}}
		for i := range scattered {
			pages["scattered"] = append(pages["scattered"], 1+i*(last-1)/scattered)
		}
		for name, numbers := range pages {
			latency, err := b.measurePages(ctx, teams, numbers, kind.query)
			if err != nil {
				return 0, fmt.Errorf("%s %s: %w", kind.name, name, err)
			}
			if l == nil {
				continue
			}
			l.Pages[kind.name+" "+name] = latency
			l.P99 = max(l.P99, latency.P99)
			b.logf("  B8: %d team(s), %s, %s: p50 %.2f ms, p99 %.2f ms", len(teams), kind.name, name, latency.P50, latency.P99)
		}
	}
	now, _ := stack.Memory(apiserver.PID())
	return float64(now), nil
}

// measurePages requests the teams' pages in turn, in several rounds, and returns the medians.
func (b *b8) measurePages(ctx context.Context, teams []stack.Team, numbers []int, query string) (bare.Latency, error) {
	var requests []bare.Request
	for i := range max(len(teams), len(numbers)) {
		requests = append(requests, bare.Request{
			Method: http.MethodGet, URL: fmt.Sprintf("%s?page=%d%s", b.stack.APIURL("/posts"), numbers[i%len(numbers)], query),
			Key: teams[i%len(teams)].Token, Status: http.StatusOK,
		})
	}
	var rounds []bare.Latency
	for range b.rounds {
		latency, err := b.measureLatency(ctx, bare.Config{
			Processor: measure.ClientProcessor, InFlight: archiveInFlight, Warm: len(requests) / 4, Count: max(b.b4Asks/10, len(requests)), Requests: requests,
		})
		if err != nil {
			return bare.Latency{}, err
		}
		rounds = append(rounds, latency)
	}
	return medianLatency(rounds), nil
}
