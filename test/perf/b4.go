// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// The goals of B4: how long 99 of a hundred answers may take, in milliseconds, and what a post may take of the
// apiserver's memory, in bytes.
const (
	goalB4      = 5.0
	goalB4Bytes = 1024.0
)

const (
	// pageSize is how many posts a page has when nobody asks for another number.
	pageSize = 20
	// manyTeams is how many teams share the posts in the second half.
	manyTeams = 1000
	// pageBytes is about what the first page takes.
	pageBytes = 5000
	// warmAsks come before latencies are measured.
	warmAsks = 2000
)

// listing is what B4 measured for one way in which posts are spread over teams.
type listing struct {
	Teams int `json:"teams"`
	Posts int `json:"posts"`
	// P99 is the worst of all pages, each the median of its rounds. FloorP99 is what a bare HTTP server takes to send as much, asked before and after the
	// apiserver: the worse of both. What others do on the machine at that moment is in it.
	P99      float64                 `json:"p99_ms"`
	FloorP99 float64                 `json:"floor_p99_ms"`
	Pages    map[string]bare.Latency `json:"pages_ms"`
	// Rates are answers a second.
	Rates map[string]float64 `json:"rates_per_s"`
	// BytesPerPost is resident memory, with the posts less without, after the same requests; HeapPerPost, of the heap in
	// use after a collection; PeakPerPost, of the most that the process ever took, which is while it starts.
	BytesPerPost float64 `json:"bytes_per_post"`
	HeapPerPost  float64 `json:"heap_bytes_per_post"`
	PeakPerPost  float64 `json:"peak_bytes_per_post"`
	// Start is from the process's start until it serves.
	Start float64 `json:"start_s"`
}

// footprint is what a process takes of memory, in bytes.
type footprint struct{ resident, peak, heap float64 }

type b4 struct {
	*session
	sample *delivered
}

// runB4 lists posts, of one team that has all of them and of many that share them.
func runB4(ctx context.Context, s *session, r *report) error {
	b := &b4{session: s}
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	var err error
	if b.sample, err = b.deliveredPost(ctx); err != nil {
		return err
	}
	many := max(s.scaled(manyTeams), 2)
	s.sayf("  B4: making %d teams", many)
	teams, err := s.stack.MakeTeams(ctx, "many", many)
	if err := errors.Join(err, s.stack.StopHerald()); err != nil {
		return err
	}
	if err := s.clear(ctx); err != nil {
		return err
	}
	one, err := b.measure(ctx, s.connected[:1])
	if err != nil {
		return err
	}
	shared, err := b.measure(ctx, teams)
	if err != nil {
		return err
	}
	p99, bytes := max(one.P99, shared.P99), max(one.BytesPerPost, shared.BytesPerPost)
	r.add("B4", map[string]any{
		"p99_ms": p99, "goal": goalB4, "met": p99 <= goalB4, "bytes_per_post": bytes, "bytes_goal": goalB4Bytes, "bytes_met": bytes <= goalB4Bytes,
		"in_flight": restInFlight, "one_team": one, "many_teams": shared,
	})
	for _, l := range []listing{one, shared} {
		r.rows = append(r.rows, row{
			id: "B4", what: fmt.Sprintf("lists of %d posts of %d team(s), 99th percentile of the slowest page", l.Posts, l.Teams),
			floor: fmt.Sprintf("%.1f ms", l.FloorP99), herald: fmt.Sprintf("%.1f ms", l.P99), goal: fmt.Sprintf("≤ %.0f ms", goalB4), met: l.P99 <= goalB4,
		})
		r.limit("", "apiserver's resident memory for each", fmt.Sprintf("%.0f B", l.BytesPerPost), fmt.Sprintf("≤ %.0f B", goalB4Bytes),
			l.BytesPerPost <= goalB4Bytes)
	}
	return nil
}

// measure plants the posts and has the apiserver list them. What it takes without any comes first.
func (b *b4) measure(ctx context.Context, teams []stack.Team) (l listing, err error) {
	posts := max(b.b4Posts/len(teams), 1)
	l = listing{Teams: len(teams), Posts: posts * len(teams), Pages: map[string]bare.Latency{}, Rates: map[string]float64{}}
	without, err := b.serve(ctx, teams, posts, nil)
	if err != nil {
		return l, err
	}
	b.sayf("  B4: planting %d posts of %d team(s)", l.Posts, l.Teams)
	forest := newForest(b.sample, b.connected[0], teams, l.Posts)
	planted, err := b.stack.Plant(ctx, l.Posts, forest.post)
	if err != nil {
		return l, err
	}
	if err := b.bareFloor(ctx, &l); err != nil {
		return l, err
	}
	with, err := b.serve(ctx, teams, posts, &l)
	if err != nil {
		return l, err
	}
	if err := b.bareFloor(ctx, &l); err != nil {
		return l, err
	}
	perPost := func(with, without float64) float64 { return measure.Rounded((with-without)/float64(l.Posts), 0) }
	l.BytesPerPost = perPost(with.resident, without.resident)
	l.HeapPerPost = perPost(with.heap, without.heap)
	l.PeakPerPost = perPost(with.peak, without.peak)
	b.sayf("  B4: bytes of a post: %.0f resident, %.0f of the heap, %.0f at the most", l.BytesPerPost, l.HeapPerPost, l.PeakPerPost)
	return l, planted.Remove(ctx)
}

// bareFloor has the bare server answer as many requests with a page's bytes.
func (b *b4) bareFloor(ctx context.Context, l *listing) error {
	request := bare.Request{Method: http.MethodGet, URL: b.stack.PostsURL(), Status: http.StatusOK}
	answer := bare.Reply{Status: http.StatusOK, Type: "application/json", Body: bytes.Repeat([]byte("x"), pageBytes)}
	floor, err := b.plainly(ctx, request, answer, b.b4Asks)
	l.FloorP99 = max(l.FloorP99, floor.latency.P99)
	b.sayf("  B4: a bare server: p50 %.2f ms, p99 %.2f ms, %.0f/s", floor.latency.P50, floor.latency.P99, floor.rate)
	return err
}

// serve starts the apiserver alone, asks for every kind of page, and returns what it took of memory. What is measured
// goes into l, unless that is nil.
func (b *b4) serve(ctx context.Context, teams []stack.Team, posts int, l *listing) (f footprint, err error) {
	begun := time.Now()
	apiserver, err := b.stack.StartAPIServer(ctx)
	defer func() { err = errors.Join(err, b.stack.StopHerald()) }()
	if err != nil {
		return f, err
	}
	started := time.Since(begun)
	_, peak := apiserver.Memory()
	if l != nil {
		l.Start = measure.Rounded(started.Seconds(), 2)
		b.sayf("  B4: the apiserver serves %.1f s after its start", l.Start)
	}
	for _, page := range pagesOf(posts) {
		if l != nil {
			if err := b.look(ctx, page, &teams[len(teams)-1]); err != nil {
				return f, fmt.Errorf("%s: %w", page.name, err)
			}
		}
		latency, rate, err := b.askRepeatedly(ctx, page, teams)
		if err != nil {
			return f, fmt.Errorf("%s: %w", page.name, err)
		}
		if l == nil {
			continue
		}
		l.Pages[page.name], l.Rates[page.name] = latency, rate
		l.P99 = max(l.P99, latency.P99)
		b.sayf("  B4: %d team(s), %s page: p50 %.2f ms, p99 %.2f ms, %.0f/s", len(teams), page.name, latency.P50, latency.P99, rate)
	}
	resident, _ := apiserver.Memory()
	heap, err := b.heap(ctx)
	return footprint{resident: float64(resident), peak: float64(peak), heap: heap}, err
}

// askRepeatedly asks for a page in several rounds. What it returns are their medians: others use the machine as well.
func (b *b4) askRepeatedly(ctx context.Context, page page, teams []stack.Team) (bare.Latency, float64, error) {
	var p50, p99, most, rates []float64
	for range b.rounds {
		result, err := b.ask(ctx, page, teams)
		if err != nil {
			return bare.Latency{}, 0, err
		}
		p50, p99, most = append(p50, result.Latency.P50), append(p99, result.Latency.P99), append(most, result.Latency.Max)
		rates = append(rates, float64(b.b4Asks)/result.End.Sub(result.Start).Seconds())
	}
	return bare.Latency{P50: measure.Median(p50), P99: measure.Median(p99), Max: measure.Median(most)}, measure.Rounded(measure.Median(rates), 0), nil
}

// ask has every team asked for a page in turn.
func (b *b4) ask(ctx context.Context, page page, teams []stack.Team) (bare.Result, error) {
	config := bare.Config{Processor: measure.ClientProcessor, InFlight: restInFlight, Warm: warmAsks, Count: b.b4Asks}
	for _, team := range teams {
		config.Requests = append(config.Requests, bare.Request{
			Method: http.MethodGet, URL: b.stack.PostsURL() + "?" + page.query.Encode(), Key: team.Token, Status: http.StatusOK,
		})
	}
	child, err := b.bare(ctx, bare.Ask, "", config)
	if err != nil {
		return bare.Result{}, err
	}
	return child.Finish(ctx)
}

// heap is what the apiserver's heap holds after a collection, in bytes.
func (b *b4) heap(ctx context.Context) (float64, error) {
	if err := b.collect(ctx, stack.APIServer); err != nil {
		return 0, err
	}
	held, err := b.heapNow(ctx, stack.APIServer)
	return float64(held), err
}

// page is a kind of page that is asked for.
type page struct {
	name  string
	query url.Values
	// posts is how many stand on it.
	posts int
}

// pagesOf are the kinds of pages of a team's posts: the first, one in the middle and the last, of all posts and of those
// that a filter leaves.
func pagesOf(posts int) []page {
	var pages []page
	for _, filter := range []struct {
		name     string
		status   v1alpha1.PostPhase
		platform v1alpha1.Platform
	}{
		{"", "", ""},
		{" by status", v1alpha1.PhasePosted, ""},
		{" by platform", "", v1alpha1.PlatformThreads},
		{" by both", v1alpha1.PhasePosted, v1alpha1.PlatformThreads},
	} {
		query := url.Values{}
		if filter.status != "" {
			query.Set("status", string(filter.status))
		}
		if filter.platform != "" {
			query.Set("platform", string(filter.platform))
		}
		total := countOf(posts, filter.status, filter.platform)
		last := max((total+pageSize-1)/pageSize, 1)
		for _, at := range []struct {
			name   string
			number int
		}{{"first", 1}, {"middle", (last + 1) / 2}, {"last", last}} {
			asked := url.Values{"page": {strconv.Itoa(at.number)}}
			maps.Copy(asked, query)
			pages = append(pages, page{at.name + filter.name, asked, min(total-(at.number-1)*pageSize, pageSize)})
		}
	}
	return pages
}

// look reads a page once and fails unless what it should show stands on it: an empty one would be fast.
func (b *b4) look(ctx context.Context, page page, team *stack.Team) error {
	answer, err := b.answerTo(ctx, bare.Request{
		Method: http.MethodGet, URL: b.stack.PostsURL() + "?" + page.query.Encode(), Key: team.Token, Status: http.StatusOK,
	})
	if err != nil {
		return err
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return err
	}
	if len(list.Data) != page.posts {
		return fmt.Errorf("%d posts of %s stand on it, want %d", len(list.Data), team.Namespace, page.posts)
	}
	return nil
}
