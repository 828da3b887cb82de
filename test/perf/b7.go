// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/sandboxtest"
)

const (
	// b7Accounts is the number of accounts that a crowd's posts are spread over.
	b7Accounts = 500
	// b7Answer is the time that the platform takes to respond to a publishing call. Posts are visible before the
	// response.
	b7Answer = 500 * time.Millisecond
	// b7Early is the time after the due time at which writes are counted: shortly before the first responses arrive.
	b7Early = b7Answer - 50*time.Millisecond
	// b7Pictured is the number of posts per picture in the crowd with pictures.
	b7Pictured = 10
	// b7Before is how long before the due time B7 starts to count writes. Two pages of the API server's metrics take half a
	// second of processor time to read and parse, which would slow down the first calls. B7 therefore reads the first page
	// early, and parses both after the delivery.
	b7Before = 500 * time.Millisecond
	// b7Margin is the minimum time between the last acceptance and the first claims.
	b7Margin = time.Second
	// goalB7Writes is the goal for a crowd's writes from b7Before until the first responses.
	goalB7Writes = 100.0
)

// crowd describes posts that are due at the same time.
type crowd struct {
	name     string
	posts    int
	accounts int
	// pictured is the number of posts for each post with a picture; zero for no pictures.
	pictured int
	// goal is the goal for the last post's lateness; zero for none.
	goal time.Duration
	// once limits the crowd to one round.
	once bool
}

// crowds returns the crowds of B7. A single account is a queue: each post waits for the response to the previous one.
func (s *settings) crowds() []crowd {
	fifth := max(s.b7Posts/5, 1)
	return []crowd{
		{name: "a fifth of the posts", posts: fifth, accounts: b7Accounts, goal: 2 * time.Second},
		{name: "all posts", posts: s.b7Posts, accounts: b7Accounts, goal: 5 * time.Second},
		{name: "all posts, a tenth with a picture", posts: s.b7Posts, accounts: b7Accounts, pictured: b7Pictured},
		{name: "a fifth of the posts, all to one account", posts: fifth, accounts: 1, once: true},
	}
}

// crowded is the result for a crowd. Lateness is the time from the due time until a post is visible on the platform.
type crowded struct {
	Posts    int     `json:"posts"`
	Accounts int     `json:"accounts"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Last     float64 `json:"last_ms"`
	// Settled is the time from the due time until the last outcome was written.
	Settled float64 `json:"settled_ms"`
	// Calls is the largest number of publishing calls in flight.
	Calls float64 `json:"calls_in_flight"`
	// Ahead, AtInstant and After count the writes to posts and to the groups' leases: from the first acceptance until
	// b7Before, from then until the first responses, and after those.
	Ahead     map[string]float64 `json:"writes_ahead_per_post"`
	AtInstant map[string]float64 `json:"writes_at_instant"`
	After     map[string]float64 `json:"writes_after_per_post"`
	Writes    float64            `json:"writes_at_instant_total"`
}

// b7 measures crowds.
type b7 struct {
	*session
	*content
	// pictures contains the pictures for some of the posts, by namespace. content.images would add them to all posts.
	pictures map[string][]picture
}

func runB7(ctx context.Context, s *session, r *report, id string) (err error) {
	b := &b7{session: s, content: s.texts(), pictures: map[string][]picture{}}
	if err := s.prepare(ctx, func() error { return b.connect(ctx) }); err != nil {
		return err
	}
	if err := s.stack.ArmCrowds(true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stack.ArmCrowds(false)) }()
	for _, c := range s.crowds() {
		s.logf("  %s: %d posts to %d accounts", c.name, c.posts, c.accounts)
		result, err := b.measure(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		r.add(fmt.Sprintf("%s %s", id, c.name), result)
		goal, met := "–", true
		if c.goal > 0 {
			goal, met = fmt.Sprintf("≤ %d ms", c.goal.Milliseconds()), result.Last <= float64(c.goal.Milliseconds())
		}
		r.limit(id, fmt.Sprintf("%d posts to %d accounts (%s), lateness of the last; p50 %.0f, p99 %.0f, settled %.0f ms, %.0f calls in flight",
			c.posts, c.accounts, c.name, result.P50, result.P99, result.Settled, result.Calls), fmt.Sprintf("%.0f ms", result.Last), goal, met)
		r.limit("", "writes from half a second before the due time until the first responses", fmt.Sprintf("%.0f", result.Writes), fmt.Sprintf("≤ %.0f", goalB7Writes), result.Writes <= goalB7Writes)
	}
	return nil
}

// connect adds accounts on X to the teams until there are b7Accounts, and uploads pictures.
func (b *b7) connect(ctx context.Context) error {
	b.teams = slices.Clone(b.connected)
	files, err := b.stack.Store()
	if err != nil {
		return err
	}
	each := (b7Accounts + len(b.teams) - 1) / len(b.teams)
	for i := range b.teams {
		team := &b.teams[i]
		missing := each - len(team.Connections)
		if missing > 0 {
			more, err := b.stack.Connect(ctx, v1alpha1.PlatformX, team.Namespace, firstX+b.connections+i*each, missing)
			if err != nil {
				return err
			}
			team.Connections = slices.Concat(team.Connections, more)
		}
		if b.pictures[team.Namespace], err = b.uploadPictures(ctx, files, team.Namespace, uint64(i*picturesPerTeam)); err != nil {
			return err
		}
	}
	return nil
}

// measure runs the rounds of a crowd and returns the medians.
func (b *b7) measure(ctx context.Context, c crowd) (crowded, error) {
	rounds := b.rounds
	if c.once {
		rounds = 1
	}
	var all []crowded
	for n := range rounds {
		one, err := b.round(ctx, c, n)
		if err != nil {
			return one, err
		}
		b.logf("    p50 %.0f ms, p99 %.0f ms, last %.0f ms, settled %.0f ms; %.0f calls in flight, %.0f writes until the first responses",
			one.P50, one.P99, one.Last, one.Settled, one.Calls, one.Writes)
		all = append(all, one)
	}
	result := all[len(all)-1]
	for field, of := range map[*float64]func(crowded) float64{
		&result.P50: func(c crowded) float64 { return c.P50 }, &result.P99: func(c crowded) float64 { return c.P99 },
		&result.Last: func(c crowded) float64 { return c.Last }, &result.Settled: func(c crowded) float64 { return c.Settled },
		&result.Calls: func(c crowded) float64 { return c.Calls }, &result.Writes: func(c crowded) float64 { return c.Writes },
	} {
		var values []float64
		for _, one := range all {
			values = append(values, of(one))
		}
		*field = measure.Rounded(measure.Median(values), 1)
	}
	return result, nil
}

// round delivers a crowd once. Herald runs with its defaults and delivery.armCrowds.
func (b *b7) round(ctx context.Context, c crowd, n int) (result crowded, err error) {
	if err := b.stack.StartHerald(ctx); err != nil {
		return result, err
	}
	defer func() {
		err = errors.Join(err, b.stack.StopHerald(), b.stack.Sandbox.ClearFaults(ctx))
		if err == nil {
			err = b.clear(ctx)
		}
	}()
	slow := sandboxtest.Fault{
		Platform: string(v1alpha1.PlatformX), Operation: "publish", Kind: "slow_answer",
		DelayMS: int(b7Answer.Milliseconds()), Times: 100 * c.posts,
	}
	if err := b.stack.Sandbox.Fault(ctx, slow); err != nil {
		return result, err
	}
	before, err := b.writes(ctx)
	if err != nil {
		return result, err
	}
	due, err := b.scheduleCrowd(ctx, c, n)
	if err != nil {
		return result, err
	}
	return b.deliver(ctx, c, due, before)
}

// scheduleCrowd creates a crowd's posts and returns their due time. All posts are accepted and those with pictures are
// prepared before that.
func (b *b7) scheduleCrowd(ctx context.Context, c crowd, n int) (time.Time, error) {
	lead := delivery.ArmAhead(c.posts) + 5*time.Second + time.Duration(c.posts)*b.lead
	if c.pictured > 0 {
		lead += time.Duration(c.posts/c.pictured) * 60 * time.Millisecond
	}
	due := time.Now().Add(lead).Truncate(time.Second)
	posts := make([]*v1alpha1.Post, c.posts)
	for i := range posts {
		team := b.teams[i%len(b.teams)]
		nth := i / len(b.teams)
		if c.accounts == 1 {
			team, nth = b.teams[0], 0
		}
		posts[i] = b.post(team, nth, due, fmt.Sprintf("crowd-%d-%d", n, i), nth%len(team.Connections))
		if c.pictured > 0 && i%c.pictured == 0 {
			pictures := b.pictures[team.Namespace]
			addPicture(posts[i], pictures[i%len(pictures)].name)
		}
	}
	err := inParallel(ctx, posts, func(ctx context.Context, post *v1alpha1.Post) error { return b.stack.Kubernetes.Create(ctx, post) })
	if err != nil {
		return due, err
	}
	if _, err = b.awaitNone(ctx, notScheduled); err == nil && c.pictured > 0 {
		err = b.awaitPrepared(ctx)
	}
	if err == nil && time.Until(due) < delivery.ArmAhead(c.posts)+b7Margin {
		err = fmt.Errorf("%d posts were accepted only %s before their due time; try a smaller BENCH_B7_POSTS", c.posts, time.Until(due).Round(time.Second))
	}
	return due, err
}

// deliver waits for a crowd's due time and for its delivery, and returns the measurements.
func (b *b7) deliver(ctx context.Context, c crowd, due time.Time, before measure.Writes) (crowded, error) {
	result := crowded{Posts: c.posts, Accounts: c.accounts}
	if err := waitUntil(ctx, due.Add(-b7Before)); err != nil {
		return result, err
	}
	pageBefore, err := b.metrics(ctx)
	if err != nil {
		return result, err
	}
	if err := waitUntil(ctx, due.Add(b7Early)); err != nil {
		return result, err
	}
	pageEarly, err := b.metrics(ctx)
	if err != nil {
		return result, err
	}
	end, err := b.awaitNone(ctx, notFinished)
	if err != nil {
		return result, err
	}
	at, err := measure.SumWrites(pageBefore)
	if err != nil {
		return result, err
	}
	early, err := measure.SumWrites(pageEarly)
	if err != nil {
		return result, err
	}
	after, err := b.writes(ctx)
	if err != nil {
		return result, err
	}
	peak, err := b.stack.Sandbox.Peak(ctx, string(v1alpha1.PlatformX), "publish")
	if err != nil {
		return result, err
	}
	result.Settled, result.Calls = float64(end.Sub(due).Milliseconds()), float64(peak)
	result.Ahead, result.After = relevant(at.Since(before)).Per(c.posts), relevant(after.Since(early)).Per(c.posts)
	instant := relevant(early.Since(at))
	result.AtInstant = instant.Per(1)
	for _, writes := range instant {
		result.Writes += writes
	}
	err = b.lateness(ctx, c, due, &result)
	return result, err
}

// relevant returns the writes to posts and to leases.
func relevant(w measure.Writes) measure.Writes {
	w = maps.Clone(w)
	maps.DeleteFunc(w, func(key string, _ float64) bool {
		only := measure.Writes{key: 1}
		return only.Of("posts")+only.Of("leases") == 0
	})
	return w
}

// lateness reads the time at which each post became visible from the platform. It fails unless each post was published
// once.
func (b *b7) lateness(ctx context.Context, c crowd, due time.Time, result *crowded) error {
	published, err := b.shown(ctx, b.platforms)
	if err != nil {
		return err
	}
	texts := map[string]bool{}
	var late []float64
	for i := range published {
		texts[published[i].Text] = true
		late = append(late, float64(published[i].CreatedAt.Sub(due).Milliseconds()))
	}
	if len(published) != c.posts || len(texts) != c.posts {
		return errors.Join(fmt.Errorf("%d posts were published %d times, %d of them different", c.posts, len(published), len(texts)), b.whyNot(ctx))
	}
	result.P50, result.P99, result.Last = measure.Quantile(late, 0.5), measure.Quantile(late, 0.99), measure.Quantile(late, 1)
	return nil
}
