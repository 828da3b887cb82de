// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

const (
	// growthInFlight is the number of concurrent requests for pages and for new posts.
	growthInFlight = 8
	// growthPages and growthCreates are the numbers of measured requests, and growthDue is the number of posts that are
	// due at the same time.
	growthPages, growthCreates, growthDue = 4000, 1000, 1000
	// firstB12 is the first account number.
	firstB12 = firstX + 2_000_000
	// quietFor is the time without writes after which a start is over.
	quietFor = 3 * time.Second
	// canaryWrites is more than the number of writes to the posts that show that a start is over.
	canaryWrites = 100
)

// growthSizes are the numbers of stored posts and of the teams that share them.
var growthSizes = struct{ posts, teams []int }{[]int{1000, 10_000, 100_000}, []int{1, 100, 1000}}

// grown is the result with one number of waiting posts and of their teams.
type grown struct {
	Posts int `json:"posts"`
	Teams int `json:"teams"`
	// Settled is the number of posts to two accounts settled per second, of those that are due at the same time. Four
	// other teams own them.
	Settled float64 `json:"settled_per_s"`
	// List and Create are the latencies of a team's first page and of a new post, in milliseconds.
	List   bare.Latency `json:"list_ms"`
	Create bare.Latency `json:"create_ms"`
	// Manager and APIServer are the processes' resident memory once they have started, in MiB.
	Manager   float64 `json:"manager_mib"`
	APIServer float64 `json:"apiserver_mib"`
}

// b12 measures how Herald's speed and memory depend on the number of posts that wait for their time, and on the number
// of their teams. Finished posts are not stored, because a starting manager would first store their records. Unlike the
// others, it measures each size once.
type b12 struct {
	*session
	// name is the prefix of the teams' names, and firstAccount the number of their first account.
	name         string
	firstAccount int

	sample *delivered
	teams  []stack.Team
}

func runB12(ctx context.Context, s *session, r *report, id string) error {
	b := &b12{session: s, name: "growth", firstAccount: firstB12}
	var all []grown
	for _, teams := range growthSizes.teams {
		if err := s.prepare(ctx, func() error { return b.addTeams(ctx, s.scaled(teams)) }); err != nil {
			return err
		}
		for _, posts := range growthSizes.posts {
			g, err := b.measure(ctx, b.teams, s.scaled(posts))
			if err != nil {
				return fmt.Errorf("%d posts of %d teams: %w", posts, teams, err)
			}
			all = append(all, *g)
			r.rows = append(r.rows, row{
				id: id, what: fmt.Sprintf("%d waiting posts of %d team(s): posts to two accounts settled per second; p99 of a page and of a new post; MiB of manager and apiserver", g.Posts, g.Teams),
				herald: fmt.Sprintf("%.0f; %.1f and %.1f ms; %.0f and %.0f", g.Settled, g.List.P99, g.Create.P99, g.Manager, g.APIServer),
			})
		}
	}
	r.add(id, all)
	return nil
}

// addTeams adds teams with two accounts each until there are as many as given, and prepares a sample. Herald must be
// running.
func (b *b12) addTeams(ctx context.Context, teams int) (err error) {
	if b.sample == nil {
		if b.sample, err = b.deliveredPost(ctx, b.texts()); err != nil {
			return err
		}
	}
	b.logf("  making %d teams with two accounts each", teams-len(b.teams))
	first := len(b.teams)
	added, err := b.stack.MakeTeams(ctx, fmt.Sprintf("%s-%d", b.name, teams), teams-first)
	if err != nil {
		return err
	}
	numbers := make([]int, len(added))
	for i := range numbers {
		numbers[i] = i
	}
	err = inParallel(ctx, numbers, func(ctx context.Context, i int) (err error) {
		added[i].Connections, err = b.stack.Connect(ctx, v1alpha1.PlatformX, added[i].Namespace, b.firstAccount+2*(first+i), 2)
		return err
	})
	b.teams = append(b.teams, added...)
	return err
}

// measure stores posts of the teams, starts Herald and measures it.
func (b *b12) measure(ctx context.Context, teams []stack.Team, posts int) (g *grown, err error) {
	g = &grown{Posts: posts, Teams: len(teams)}
	started := time.Now()
	stored, err := b.stack.StorePosts(ctx, posts, func(i int) *v1alpha1.Post {
		return b.stored(teams, i, started.Add(-time.Minute).Add(time.Duration(i)*time.Millisecond))
	})
	if err != nil {
		return nil, err
	}
	if err := b.start(ctx, posts); err != nil {
		return nil, err
	}
	for _, p := range b.stack.Herald() {
		now, _ := stack.Memory(p.PID())
		if p.Name == processes.Manager {
			g.Manager = inMiB(now)
		} else {
			g.APIServer = inMiB(now)
		}
	}
	if g.List, err = b.requests(ctx, growthPages, b.lists(teams, nil)); err != nil {
		return nil, err
	}
	creates, err := newPosts(b.stack.APIURL("/posts"), teams)
	if err != nil {
		return nil, err
	}
	if g.Create, err = b.requests(ctx, growthCreates, creates); err != nil {
		return nil, err
	}
	if g.Settled, err = b.settle(ctx); err != nil {
		return nil, err
	}
	b.logf("  B12: %d posts of %d team(s): %+v", g.Posts, g.Teams, *g)
	for _, step := range []func() error{
		b.stack.StopHerald,
		func() error { return stored.Remove(ctx) },
		func() error { return b.clearTeams(ctx, teams) },
		func() error { return b.clear(ctx) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// stored returns the i-th post as it is stored, after the manager has accepted it.
func (b *b12) stored(teams []stack.Team, i int, at time.Time) *v1alpha1.Post {
	team := teams[i%len(teams)]
	post := b.texts().post(team, i, at.Add(farAhead), fmt.Sprint("stored ", i), 0, 1)
	post.Annotations[v1alpha1.BornAnnotation] = v1alpha1.NewTime(at).String()
	asStored(post, at)
	b.sample.accepted.DeepCopyInto(&post.Status)
	delivery.Describe(post, at) // its messages state the post's own time
	return post
}

// start starts Herald, and waits until that is over. It returns an error if Herald writes the stored posts, because then
// they are not as Herald stores them.
func (b *b12) start(ctx context.Context, posts int) error {
	before, err := b.writes(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(b.stack.StartHerald(ctx), b.awaitQuiet(ctx)); err != nil {
		return err
	}
	after, err := b.writes(ctx)
	if err == nil && after.Of("posts")-before.Of("posts") > canaryWrites+float64(posts)/10 {
		err = fmt.Errorf("the start of Herald wrote %.0f times to %d stored posts", after.Of("posts")-before.Of("posts"), posts)
	}
	return err
}

// awaitQuiet waits until Herald has written nothing for a while, so that its start is over.
func (b *b12) awaitQuiet(ctx context.Context) error {
	before := -1.0
	return until(ctx, quietFor, "Herald has started", func(ctx context.Context) (bool, error) {
		writes, err := b.writes(ctx)
		if err != nil {
			return false, err
		}
		now := writes.Of("posts")
		quiet := now == before
		before = now
		return quiet, nil
	})
}

// newPosts returns requests that create a scheduled post of each team.
func newPosts(url string, teams []stack.Team) (requests []bare.Request, err error) {
	for _, team := range teams {
		body, err := json.Marshal(map[string]any{
			"category":     v1alpha1.CategoryText,
			"scheduled_at": time.Now().Add(farAhead).UTC().Format(time.RFC3339),
			"targets":      []map[string]string{{"connection_id": team.Connections[0].Name, "caption": "A new post beside many others"}},
		})
		if err != nil {
			return nil, err
		}
		requests = append(requests, bare.Request{Method: http.MethodPost, URL: url, Key: team.Token, Body: body, Status: http.StatusCreated})
	}
	return requests, nil
}

// requests sends requests in rotation and returns their latency.
func (b *b12) requests(ctx context.Context, count int, requests []bare.Request) (bare.Latency, error) {
	return b.measureLatency(ctx, bare.Config{InFlight: growthInFlight, Warm: b.scaled(count / 10), Count: b.scaled(count), Requests: requests})
}

// settle delivers posts of the other teams that are due at the same time, and returns how many are settled per second.
func (b *b12) settle(ctx context.Context) (perSecond float64, err error) {
	posts := b.scaled(growthDue)
	due := time.Now().Add(2*time.Duration(posts)*b.texts().lead + 2*leadMargin).Truncate(time.Second)
	crowd := make([]*v1alpha1.Post, posts)
	for i := range crowd {
		team := b.connected[i%len(b.connected)]
		accounts := len(team.Connections)
		crowd[i] = b.texts().post(team, i, due, fmt.Sprintf("due %d", i), i%accounts, (i+1)%accounts)
	}
	err = inParallel(ctx, crowd, func(ctx context.Context, post *v1alpha1.Post) error { return b.stack.Kubernetes.Create(ctx, post) })
	if err == nil {
		err = b.awaitIn(ctx, notScheduled)
	}
	if err == nil && time.Now().After(due) {
		err = fmt.Errorf("this machine does not accept %d posts in time; try a smaller BENCH_SCALE", posts)
	}
	if err != nil {
		return 0, err
	}
	before, err := b.stack.Sandbox.Calls(ctx, string(v1alpha1.PlatformX))
	if err == nil {
		err = waitUntil(ctx, due)
	}
	if err != nil {
		return 0, err
	}
	// The platform is polled first, since the API server's time is measured.
	err = until(ctx, pollEvery, "all posts are published", func(ctx context.Context) (bool, error) {
		calls, err := b.stack.Sandbox.Calls(ctx, string(v1alpha1.PlatformX))
		return calls["publish"]-before["publish"] >= 2*posts, err
	})
	if err == nil {
		err = b.awaitIn(ctx, notPosted)
	}
	return measure.Rounded(float64(posts)/time.Since(due).Seconds(), 1), err
}

// awaitIn waits until no post of the teams that deliver matches the field selector.
func (b *b12) awaitIn(ctx context.Context, selector string) error {
	return until(ctx, pollEvery, "no post has "+selector, func(ctx context.Context) (bool, error) {
		for _, team := range b.connected {
			left, err := b.posts.Namespace(team.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: 1})
			if err != nil || len(left.Items) > 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// clearTeams removes the posts that the requests have created.
func (b *b12) clearTeams(ctx context.Context, teams []stack.Team) error {
	return inParallel(ctx, teams, func(ctx context.Context, team stack.Team) error { return b.removePosts(ctx, team.Namespace) })
}
