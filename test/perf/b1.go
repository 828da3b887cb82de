// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/test/perf/internal/bare"
)

// goalB1 is the share of the bare pair's rate that Herald should reach.
const goalB1 = 0.85

const (
	// notScheduled selects posts that the manager has not accepted yet.
	notScheduled = "status.phase!=scheduled,metadata.namespace!=canary"
	// farAhead is how far ahead B1's posts are scheduled, so none becomes due during the benchmark.
	farAhead = 48 * time.Hour
)

// b1 compares Herald with the bare pair. In Herald, posts are created through the REST API, and the manager accepts
// each of them. In the bare pair, one program creates the same objects, and the other watches them and writes the same
// status.
type b1 struct {
	*session
	load   bare.Config
	post   *v1alpha1.Post
	status v1alpha1.PostStatus
}

func runB1(ctx context.Context, s *session, r *report, id string) error {
	b := &b1{session: s}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	c, err := s.compare(ctx, id, b.floor, b.herald)
	if err != nil {
		return err
	}
	c.Goal, c.Met, c.Posts, c.InFlight = goalB1, c.Ratio >= goalB1, s.b1Posts, restInFlight
	r.compared(id, "posts created and accepted per second", c, nil)
	return nil
}

// prepare builds the request, and a sample of the objects that the bare pair writes.
func (b *b1) prepare(ctx context.Context) error {
	team := b.connected[0]
	body, err := json.Marshal(map[string]any{
		"category":     v1alpha1.CategoryText,
		"scheduled_at": time.Now().Add(farAhead).UTC().Format(time.RFC3339),
		"targets": []map[string]string{{
			"connection_id": team.Connections[0].Name,
			"caption":       "We launched today, and we would love to hear what you think of it: https://example.com/launch",
		}},
	})
	if err != nil {
		return err
	}
	b.load = bare.Config{InFlight: restInFlight, Warm: b.warmPosts(), Count: b.b1Posts, Requests: []bare.Request{{
		Method: http.MethodPost, URL: b.stack.APIURL("/posts"), Key: team.Token, Body: body, Status: http.StatusCreated,
	}}}
	return b.session.prepare(ctx, func() error {
		post, err := b.acceptedPost(ctx, team, body)
		if err == nil {
			b.post, b.status = asCreated(post), post.Status
		}
		return err
	})
}

// warmPosts returns the number of posts created before the measurement, to complete one-time work such as connections
// and schema lookups.
func (b *b1) warmPosts() int { return max(b.b1Posts/10, 4*restInFlight) }

func (b *b1) floor(ctx context.Context, _ int) (float64, map[string]float64, error) {
	group, inner := errgroup.WithContext(ctx)
	answer, err := b.bare(inner, bare.Answer, processes.Manager, bare.Config{
		InFlight: restInFlight, Count: b.b1Posts + b.warmPosts(), Statuses: []v1alpha1.PostStatus{b.status},
	})
	if err != nil {
		return 0, nil, err
	}
	defer answer.Kill()
	if err := answer.Go(); err != nil {
		return 0, nil, err
	}
	create, err := b.bare(inner, bare.Create, processes.APIServer, bare.Config{
		InFlight: restInFlight, Warm: b.warmPosts(), Count: b.b1Posts, Post: b.post,
	})
	if err != nil {
		return 0, nil, err
	}
	defer create.Kill()
	var created, answered bare.Result
	var before map[string]time.Duration
	group.Go(func() (err error) { answered, err = answer.Wait(); return err })
	group.Go(func() error {
		if _, err := b.awaitNone(inner, notScheduled); err != nil {
			return err
		}
		before = b.cpuTimes()
		var err error
		created, err = create.Finish()
		return err
	})
	if err := group.Wait(); err != nil {
		return 0, nil, err
	}
	end := created.End
	if answered.End.After(end) {
		end = answered.End
	}
	cpu := b.perPost(before, b.b1Posts, map[string]time.Duration{"bare create": created.CPU, "bare answer": answered.CPU})
	return float64(b.b1Posts) / end.Sub(created.Start).Seconds(), cpu, nil
}

func (b *b1) herald(ctx context.Context, _ int) (float64, map[string]float64, error) {
	if err := b.stack.StartHerald(ctx); err != nil {
		return 0, nil, err
	}
	load, err := b.bare(ctx, bare.Ask, "", b.load)
	if err != nil {
		return 0, nil, err
	}
	defer load.Kill()
	if _, err := b.awaitNone(ctx, notScheduled); err != nil {
		return 0, nil, err
	}
	before := b.cpuTimes()
	profiled := b.profile(ctx, "B1")
	created, err := load.Finish()
	if err != nil {
		return 0, nil, err
	}
	end, err := b.awaitNone(ctx, notScheduled)
	if err != nil {
		return 0, nil, err
	}
	cpu := b.perPost(before, b.b1Posts, map[string]time.Duration{"load": created.CPU})
	return float64(b.b1Posts) / end.Sub(created.Start).Seconds(), cpu, profiled()
}
