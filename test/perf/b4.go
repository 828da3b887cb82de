// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// B4's goals: the 99th percentile of the response time, in milliseconds on a quiet machine, or as a multiple of a bare
// server's time for the same bytes in the same run; and the apiserver's memory per post, in bytes.
const (
	goalB4      = 5.0
	goalB4Ratio = 2.0
	goalB4Bytes = 1024.0
)

// isQuick reports whether every page meets the goal. On a busy machine the bare server is slow as well.
func (l *listing) isQuick() bool {
	for name, page := range l.Pages {
		if page.P99 > max(goalB4, goalB4Ratio*l.Floors[name].P99) {
			return false
		}
	}
	return true
}

const (
	// pageSize is the default number of posts per page.
	pageSize = 20
	// manyTeams is the number of teams that share the posts in the second half.
	manyTeams = 1000
	// warmAsks is the number of requests before the measurement.
	warmAsks = 2000
)

// listing is the result of B4 for one distribution of posts across teams.
type listing struct {
	Teams int `json:"teams"`
	Posts int `json:"posts"`
	// Pages has the latency of each kind of page. Floors has that of a bare HTTP server, which sends as many bytes as the
	// first page and is measured in rounds that alternate with the page's. Both are medians of the rounds.
	Pages  map[string]bare.Latency `json:"pages_ms"`
	Floors map[string]bare.Latency `json:"floors_ms"`
	// P99 and FloorP99 belong to the page that is slowest in relation to its floor.
	P99      float64 `json:"p99_ms"`
	FloorP99 float64 `json:"floor_p99_ms"`
	// BytesPerPost is the increase in resident memory due to a post, after the same requests.
	BytesPerPost float64 `json:"bytes_per_post"`
	// Start is the time from when the process starts until it serves requests.
	Start float64 `json:"start_s"`
}

type b4 struct {
	*session
	sample *delivered
}

// runB4 lists the posts of one team that has all of them, and of many teams that share them.
func runB4(ctx context.Context, s *session, r *report, id string) error {
	b := &b4{session: s}
	var teams []stack.Team
	err := s.prepare(ctx, func() (err error) {
		if b.sample, err = b.deliveredPost(ctx, s.texts()); err != nil {
			return err
		}
		many := max(s.scaled(manyTeams), 2)
		s.logf("  B4: creating %d teams", many)
		teams, err = s.stack.MakeTeams(ctx, "many", many)
		return err
	})
	if err != nil {
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
	r.add(id, map[string]any{
		"p99_ms": p99, "goal": goalB4, "goal_ratio": goalB4Ratio, "met": one.isQuick() && shared.isQuick(),
		"bytes_per_post": bytes, "bytes_goal": goalB4Bytes, "bytes_met": bytes <= goalB4Bytes,
		"in_flight": restInFlight, "one_team": one, "many_teams": shared,
	})
	for _, l := range []listing{one, shared} {
		r.rows = append(r.rows, row{
			id: id, what: fmt.Sprintf("lists of %d posts in %d team(s), 99th percentile of the slowest page; median of all pages: %.2f", l.Posts, l.Teams, l.medianRatio()),
			floor: fmt.Sprintf("%.1f ms", l.FloorP99), herald: fmt.Sprintf("%.1f ms", l.P99), ratio: fmt.Sprintf("%.2f", l.P99/l.FloorP99),
			goal: fmt.Sprintf("≤ %.0f ms or %.0f ×", goalB4, goalB4Ratio), met: l.isQuick(),
		})
		r.limit("", "apiserver's resident memory per post", fmt.Sprintf("%.0f B", l.BytesPerPost), fmt.Sprintf("≤ %.0f B", goalB4Bytes),
			l.BytesPerPost <= goalB4Bytes)
	}
	return nil
}

// measure stores posts and measures how the apiserver lists them. It first measures the apiserver without posts.
func (b *b4) measure(ctx context.Context, teams []stack.Team) (l listing, err error) {
	posts := max(b.b4Posts/len(teams), 1)
	l = listing{Teams: len(teams), Posts: posts * len(teams), Pages: map[string]bare.Latency{}, Floors: map[string]bare.Latency{}}
	without, err := b.serve(ctx, teams, posts, nil)
	if err != nil {
		return l, err
	}
	b.logf("  B4: storing %d posts in %d team(s)", l.Posts, l.Teams)
	stored, err := b.stack.StorePosts(ctx, l.Posts, newPostMix(b.sample, b.texts(), teams, l.Posts).post)
	if err != nil {
		return l, err
	}
	with, err := b.serve(ctx, teams, posts, &l)
	if err != nil {
		return l, err
	}
	l.BytesPerPost = measure.Rounded((with-without)/float64(l.Posts), 0)
	b.logf("  B4: resident memory per post in bytes: %.0f", l.BytesPerPost)
	return l, stored.Remove(ctx)
}

// startFloor starts a bare server and returns a request for a page of the given size, in bytes.
func (b *b4) startFloor(ctx context.Context, size int) (request bare.Request, server *bare.Child, err error) {
	server, err = b.bare(ctx, bare.Plain, "", bare.Config{
		Processor: measure.ServerProcessor, Address: b.stack.Setup.Address(stack.Plain), Reply: size,
	})
	if err != nil {
		return request, nil, err
	}
	if err := server.Go(); err != nil {
		server.Kill()
		return request, nil, err
	}
	return bare.Request{Method: http.MethodGet, URL: b.stack.Setup.URL(stack.Plain) + "?page=1", Status: http.StatusOK}, server, nil
}

// serve starts only the apiserver, requests every kind of page, and returns its resident memory after that, in bytes.
// It stores the latencies in l unless l is nil.
func (b *b4) serve(ctx context.Context, teams []stack.Team, posts int, l *listing) (resident float64, err error) {
	started := time.Now()
	apiserver, err := b.stack.StartAPIServer(ctx)
	defer func() { err = errors.Join(err, b.stack.StopHerald()) }()
	if err != nil {
		return 0, err
	}
	if l != nil {
		l.Start = measure.Rounded(time.Since(started).Seconds(), 2)
		b.logf("  B4: the apiserver is ready %.1f s after its start", l.Start)
		profiled := b.profile(ctx, fmt.Sprintf("B4-of-%d", len(teams)))
		defer func() { err = errors.Join(err, profiled()) }()
	}
	if err := b.requestPages(ctx, teams, posts, l); err != nil {
		return 0, err
	}
	now, _ := stack.Memory(apiserver.PID())
	return float64(now), nil
}

// requestPages requests every kind of page. It stores the latencies in l unless l is nil.
func (b *b4) requestPages(ctx context.Context, teams []stack.Team, posts int, l *listing) error {
	pages := pagesOf(posts)
	var floor []bare.Request
	if l != nil {
		size, err := checkPage(ctx, pages[0], b.lists(teams, pages[0].query)[0])
		if err != nil {
			return err
		}
		request, server, err := b.startFloor(ctx, size)
		if err != nil {
			return err
		}
		defer server.Kill()
		floor = append(floor, request)
	}
	for _, page := range pages {
		requests := b.lists(teams, page.query)
		if l != nil {
			if _, err := checkPage(ctx, page, requests[len(requests)-1]); err != nil {
				return err
			}
		}
		floors, latency, err := b.alternate(ctx, floor, requests)
		if err != nil {
			return fmt.Errorf("%s: %w", page.name, err)
		}
		if l == nil {
			continue
		}
		l.add(page.name, floors, latency)
		b.logf("  B4: %d team(s), %s page: p50 %.2f ms, p99 %.2f ms; a bare server: p50 %.2f ms, p99 %.2f ms",
			len(teams), page.name, latency.P50, latency.P99, floors.P50, floors.P99)
	}
	return nil
}

// add adds the latency of a kind of page and of its floor.
func (l *listing) add(page string, floor, of bare.Latency) {
	l.Pages[page], l.Floors[page] = of, floor
	if l.P99 == 0 || of.P99/floor.P99 > l.P99/l.FloorP99 {
		l.P99, l.FloorP99 = of.P99, floor.P99
	}
}

// medianRatio is the median page's P99, as a multiple of its floor's. The slowest of a dozen pages changes from run to
// run.
func (l *listing) medianRatio() float64 {
	var ratios []float64
	for name, page := range l.Pages {
		ratios = append(ratios, page.P99/l.Floors[name].P99)
	}
	return measure.Median(ratios)
}

// alternate sends requests to the bare server, unless there are none for it, and to Herald in alternating rounds,
// because other programs also use the machine, and returns the medians of the rounds.
func (b *b4) alternate(ctx context.Context, floor, herald []bare.Request) (floors, pages bare.Latency, err error) {
	var rounds [2][]bare.Latency
	for range b.rounds {
		for i, requests := range [][]bare.Request{floor, herald} {
			if len(requests) == 0 {
				continue
			}
			latency, err := b.requestAll(ctx, requests)
			if err != nil {
				return floors, pages, err
			}
			rounds[i] = append(rounds[i], latency)
		}
	}
	return medianLatency(rounds[0]), medianLatency(rounds[1]), nil
}

// requestAll sends the requests in order and returns their latency.
func (b *b4) requestAll(ctx context.Context, requests []bare.Request) (bare.Latency, error) {
	return b.measureLatency(ctx, bare.Config{
		Processor: measure.ClientProcessor, InFlight: restInFlight, Warm: warmAsks, Count: b.b4Asks, Requests: requests,
	})
}

// page is a kind of page.
type page struct {
	name  string
	query url.Values
	// posts is the number of posts on the page.
	posts int
}

// pagesOf returns the kinds of pages for a team with the given number of posts: the first, a middle and the last page,
// both of all posts and with a filter.
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
		total := countOf(posts, filter.status, filter.platform)
		last := max((total+pageSize-1)/pageSize, 1)
		for _, at := range []struct {
			name   string
			number int
		}{{"first", 1}, {"middle", (last + 1) / 2}, {"last", last}} {
			asked := url.Values{"page": {strconv.Itoa(at.number)}}
			if filter.status != "" {
				asked.Set("status", string(filter.status))
			}
			if filter.platform != "" {
				asked.Set("platform", string(filter.platform))
			}
			pages = append(pages, page{at.name + filter.name, asked, min(total-(at.number-1)*pageSize, pageSize)})
		}
	}
	return pages
}

// checkPage reads a page once and checks its content, because an empty page would be fast. It returns the page's size.
func checkPage(ctx context.Context, page page, asked bare.Request) (size int, err error) {
	var body json.RawMessage
	if err := call(ctx, asked.Method, asked.URL, asked.Key, nil, &body); err != nil {
		return 0, fmt.Errorf("%s page: %w", page.name, err)
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return 0, fmt.Errorf("%s page: %w", page.name, err)
	}
	if len(list.Data) != page.posts {
		return 0, fmt.Errorf("the %s page has %d posts, want %d", page.name, len(list.Data), page.posts)
	}
	return len(body), nil
}
