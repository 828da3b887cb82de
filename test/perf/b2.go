// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/sandboxtest"
)

// B2's goals: the share of the bare loop's rate, and the maximum number of writes of a post to the Kubernetes API from
// its due time on.
const (
	goalB2       = 0.8
	goalB2Writes = 2.0
)

const (
	notFinished = "status.finished!=true,metadata.namespace!=canary"
	notPosted   = "status.phase!=posted,metadata.namespace!=canary"
	// leadMargin is the minimum time between the last acceptance and the due time.
	leadMargin = 5 * time.Second
	// leadTries is the maximum number of attempts at a round. Each retry doubles the lead.
	leadTries = 3
	// listedAtOnce is the page size of post lists.
	listedAtOnce = 500
	// preparedEvery is the interval at which to check whether posts are prepared. The checks put load on the API
	// server.
	preparedEvery = 2 * time.Second
	// eventsLag is the time without a new event after which all events count as written: Herald spreads the last events
	// of a burst over minutes.
	eventsLag = 5 * time.Second
)

// b2 compares the delivery of posts that are due at the same time with a bare loop that makes the same writes and
// calls.
type b2 struct {
	*session
	*content
	id     string
	sample *delivered
	// until is the lead: the time between the creation of a round's posts and their due time.
	until  time.Duration
	writes []measure.Writes
	count  []float64
	// early are the writes per post between its creation and its due time.
	early []float64
	// published is the number of publishing calls before the round.
	published int
}

func runB2(ctx context.Context, s *session, r *report, id string) error {
	b := &b2{session: s, id: id}
	err := s.prepare(ctx, func() (err error) {
		if b.content, err = s.contentOf(ctx, id); err == nil {
			b.sample, err = s.deliveredPost(ctx, b.content)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.until = 10*time.Second + time.Duration(s.b2Posts)*b.lead
	what := "posts to two accounts, settled per second"
	if len(b.images) > 0 {
		what = "posts with an image to X and Threads, uploaded before, settled per second"
	}
	return s.withNeighbour(ctx, r, id, func() error { return b.report(ctx, r, what) })
}

// report compares the two sides and reports the result.
func (b *b2) report(ctx context.Context, r *report, what string) error {
	c, err := b.compare(ctx, b.id, b.floor, b.herald)
	if err != nil {
		return err
	}
	c.Goal, c.Met, c.Posts, c.InFlight = goalB2, c.Ratio >= goalB2, b.b2Posts, b.inFlight
	// Two results that arrive more than 100 ms apart are written separately. Rounding ignores one such post in two
	// hundred.
	writes := measure.Rounded(measure.Median(b.count), 2)
	last := len(b.writes) - 1
	events := measure.Rounded(b.writes[last].Of("events")/float64(b.b2Posts), 3)
	all := measure.Rounded(writes+events, 2)
	r.compared(b.id, what, c, map[string]any{
		"writes_per_post":      writes,
		"writes_goal":          goalB2Writes,
		"writes_met":           writes <= goalB2Writes,
		"events_per_post":      events,
		"all_writes_per_post":  all,
		"writes_by_kind":       b.writes[last].Per(b.b2Posts),
		"connections":          len(b.teams) * len(b.teams[0].Connections),
		"teams":                len(b.teams),
		"writes_per_post_each": b.count,
		"writes_ahead_each":    b.early,
	})
	r.limit("", fmt.Sprintf("status writes per post after the due time (%.2f before it); with events %.2f writes", measure.Median(b.early), all),
		fmt.Sprintf("%.2f", writes), fmt.Sprintf("≤ %.0f", goalB2Writes), writes <= goalB2Writes)
	return nil
}

// roundPosts returns the posts of a round. Each goes to two random accounts of one team, with a fixed seed.
func (b *b2) roundPosts(at time.Time, round string) []*v1alpha1.Post {
	draw := rand.New(rand.NewPCG(1, 2))
	posts := make([]*v1alpha1.Post, b.b2Posts)
	for i := range posts {
		team := b.teams[i%len(b.teams)]
		first, second := b.two(draw, team)
		posts[i] = b.post(team, i/len(b.teams), at, fmt.Sprintf("%s-%d", round, i), first, second)
	}
	return posts
}

func (b *b2) floor(ctx context.Context, round int) (float64, map[string]float64, error) {
	posts := b.roundPosts(time.Now().Add(farAhead), fmt.Sprintf("floor-%d", round))
	err := inParallel(ctx, posts, func(ctx context.Context, post *v1alpha1.Post) error {
		if err := b.stack.Kubernetes.Create(ctx, post); err != nil {
			return err
		}
		post.Status = b.sample.accepted
		return b.stack.Kubernetes.Status().Update(ctx, post)
	})
	if err != nil {
		return 0, nil, err
	}
	config := bare.Config{
		InFlight: b.inFlight, Count: b.b2Posts, Accounts: map[string]bare.Account{}, Files: map[string]string{},
		Statuses: []v1alpha1.PostStatus{b.sample.claimed, b.sample.posted},
	}
	for _, team := range b.teams {
		for _, c := range team.Connections {
			config.Accounts[team.Namespace+"/"+c.Name] = bare.Account{Platform: c.Platform, URL: b.stack.Setup.PlatformURL(c.Platform), ID: c.AccountID, Token: c.AccessToken}
		}
		for _, p := range b.images[team.Namespace] {
			config.Files[team.Namespace+"/"+p.name] = p.address
		}
	}
	deliver, err := b.bare(ctx, bare.Deliver, processes.Manager, config)
	if err != nil {
		return 0, nil, err
	}
	defer deliver.Kill()
	before := b.cpuTimes()
	result, err := deliver.Finish()
	if err != nil {
		return 0, nil, err
	}
	cpu := b.perPost(before, b.b2Posts, map[string]time.Duration{"bare deliver": result.CPU})
	return float64(b.b2Posts) / result.End.Sub(result.Start).Seconds(), cpu, b.verify(ctx)
}

// eventsWritten waits until no more events are written, and returns all writes.
func (b *b2) eventsWritten(ctx context.Context) (measure.Writes, error) {
	after, err := b.session.writes(ctx)
	for err == nil {
		if err = waitUntil(ctx, time.Now().Add(eventsLag)); err != nil {
			break
		}
		var later measure.Writes
		if later, err = b.session.writes(ctx); err == nil && later.Of("events") == after.Of("events") {
			return later, nil
		}
		after = later
	}
	return nil, err
}

func (b *b2) herald(ctx context.Context, round int) (float64, map[string]float64, error) {
	if err := b.stack.StartHerald(ctx); err != nil {
		return 0, nil, err
	}
	created, err := b.session.writes(ctx)
	if err != nil {
		return 0, nil, err
	}
	due, err := b.schedule(ctx, round)
	if err != nil {
		return 0, nil, err
	}
	before, err := b.session.writes(ctx)
	if err != nil {
		return 0, nil, err
	}
	if err := waitUntil(ctx, due); err != nil {
		return 0, nil, err
	}
	if b.published, err = b.publishCalls(ctx); err != nil {
		return 0, nil, err
	}
	used := b.cpuTimes()
	profiled := b.profile(ctx, b.id)
	if err := b.awaitPublished(ctx, 2*b.b2Posts); err != nil {
		return 0, nil, err
	}
	end, err := b.awaitNone(ctx, notFinished)
	if err != nil {
		return 0, nil, err
	}
	cpu := b.perPost(used, b.b2Posts, nil)
	if err := b.logTimes(ctx, due, end); err != nil {
		return 0, nil, err
	}
	after, err := b.eventsWritten(ctx)
	if err != nil {
		return 0, nil, err
	}
	done := after.Since(before)
	b.writes = append(b.writes, done)
	b.count = append(b.count, done.Of("posts", "create")/float64(b.b2Posts))
	b.early = append(b.early, measure.Rounded(before.Since(created).Of("posts", "create")/float64(b.b2Posts), 3))
	if err := profiled(); err != nil {
		return 0, nil, err
	}
	return float64(b.b2Posts) / end.Sub(due).Seconds(), cpu, b.verify(ctx)
}

// schedule creates a round's posts and returns their due time. By then all of them are accepted.
func (b *b2) schedule(ctx context.Context, round int) (time.Time, error) {
	for try := range leadTries {
		started := time.Now()
		due := started.Add(b.until).Truncate(time.Second)
		posts := b.roundPosts(due, fmt.Sprintf("herald-%d-%d", round, try))
		err := inParallel(ctx, posts, func(ctx context.Context, post *v1alpha1.Post) error { return b.stack.Kubernetes.Create(ctx, post) })
		if err != nil {
			return due, err
		}
		accepted, err := b.accepted(ctx, due)
		if err != nil {
			return due, err
		}
		if accepted {
			b.until = 2*time.Since(started) + leadMargin
			return due, nil
		}
		b.until *= 2
		b.logf("  not all posts were accepted before they were due; trying again with a lead of %s", b.until.Round(time.Second))
		if err := b.restart(ctx); err != nil {
			return due, err
		}
	}
	return time.Time{}, fmt.Errorf("this machine does not accept %d posts within %s; try a smaller BENCH_B2_POSTS", b.b2Posts, b.until/2)
}

// accepted waits until all posts are accepted. It returns false if that takes too long.
func (b *b2) accepted(ctx context.Context, due time.Time) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, due.Add(-leadMargin/2))
	defer cancel()
	_, err := b.awaitNone(ctx, notScheduled)
	if err == nil && len(b.images) > 0 {
		err = b.awaitPrepared(ctx)
	}
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return false, nil
	}
	return err == nil, err
}

func (b *b2) restart(ctx context.Context) error {
	if err := b.stack.StopHerald(); err != nil {
		return err
	}
	if err := b.clear(ctx); err != nil {
		return err
	}
	return b.stack.StartHerald(ctx)
}

// awaitPublished waits until the given number of posts is published. It polls the platforms and not the API server,
// whose time is being measured.
func (b *b2) awaitPublished(ctx context.Context, posts int) error {
	return until(ctx, pollEvery, fmt.Sprintf("%d calls have reached the platforms", posts), func(ctx context.Context) (bool, error) {
		calls, err := b.publishCalls(ctx)
		return calls-b.published >= posts, err
	})
}

// publishCalls returns the number of publishing calls that the platforms have received.
func (b *b2) publishCalls(ctx context.Context) (int, error) {
	sum := 0
	for _, platform := range b.platforms {
		calls, err := b.stack.Sandbox.Calls(ctx, string(platform))
		if err != nil {
			return 0, err
		}
		sum += calls["publish"]
	}
	return sum, nil
}

// shown returns the published posts.
func (s *session) shown(ctx context.Context, platforms []v1alpha1.Platform) ([]sandboxtest.Post, error) {
	var all []sandboxtest.Post
	for _, platform := range platforms {
		posts, err := s.stack.Sandbox.Posts(ctx, string(platform), "")
		if err != nil {
			return nil, err
		}
		all = append(all, posts...)
	}
	slices.SortStableFunc(all, func(a, b sandboxtest.Post) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, nil
}

// logTimes prints when the platforms published the posts.
func (b *b2) logTimes(ctx context.Context, due, end time.Time) error {
	published, err := b.shown(ctx, b.platforms)
	if err != nil || len(published) == 0 {
		return err
	}
	first, last := published[0].CreatedAt, published[len(published)-1].CreatedAt
	b.logf("  after the due time, the first was published at %.2f s, the last at %.2f s, and all were settled at %.2f s",
		first.Sub(due).Seconds(), last.Sub(due).Seconds(), end.Sub(due).Seconds())
	return nil
}

// whyNot returns the reasons and messages of targets that were not posted.
func (s *session) whyNot(ctx context.Context) error {
	var list v1alpha1.PostList
	err := s.stack.Kubernetes.List(ctx, &list)
	for i := range list.Items {
		for _, t := range list.Items[i].Status.Targets {
			if t.Phase != v1alpha1.PhasePosted {
				err = errors.Join(err, fmt.Errorf("%s was not published to %s: %s: %s", list.Items[i].Name, t.Platform, t.Reason, t.Message))
			}
		}
	}
	return err
}

// verify fails unless every post has the phase posted and was published exactly once to each of its accounts.
func (b *b2) verify(ctx context.Context) error {
	left, err := b.first(ctx, notPosted)
	if err != nil {
		return err
	}
	if left != "" {
		return errors.Join(fmt.Errorf("post %s was not posted", left), b.whyNot(ctx))
	}
	published, err := b.shown(ctx, b.platforms)
	if err != nil {
		return err
	}
	texts, sizes := map[string]int{}, map[int64]bool{}
	for _, pictures := range b.images {
		for _, p := range pictures {
			sizes[p.bytes] = true
		}
	}
	for i := range published {
		texts[published[i].AccountID+" "+published[i].Text]++
		if len(b.images) > 0 && (len(published[i].Media) != 1 || !sizes[published[i].Media[0].Bytes]) {
			return fmt.Errorf("a post with one image was published as %+v", published[i])
		}
	}
	if len(published) != 2*b.b2Posts || len(texts) != 2*b.b2Posts {
		return fmt.Errorf("%d posts to two accounts each were published %d times, %d of them different", b.b2Posts, len(published), len(texts))
	}
	return nil
}

// awaitPrepared waits until all posts are prepared.
func (s *session) awaitPrepared(ctx context.Context) error {
	return until(ctx, preparedEvery, "all posts are prepared", func(ctx context.Context) (bool, error) {
		left, err := s.unprepared(ctx)
		return left == 0, err
	})
}

// unprepared returns the number of posts with files that are not prepared.
func (s *session) unprepared(ctx context.Context) (left int, err error) {
	var list v1alpha1.PostList
	for {
		if err := s.stack.Kubernetes.List(ctx, &list, client.Limit(listedAtOnce), client.Continue(list.Continue)); err != nil {
			return 0, err
		}
		for i := range list.Items {
			post := &list.Items[i]
			if post.Spec.Category != v1alpha1.CategoryText && !meta.IsStatusConditionTrue(post.Status.Conditions, v1alpha1.ConditionPrepared) {
				left++
			}
		}
		if list.Continue == "" {
			return left, nil
		}
	}
}
