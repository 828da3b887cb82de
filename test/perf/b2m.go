// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

const (
	// leadM is how long before their due time the first round begins to create posts of pictures, for each post. Their
	// pictures are uploaded in this time.
	leadM = 60 * time.Millisecond
	// sampleLead is how long before its time a sample is created, so that it is prepared by then.
	sampleLead = 8 * time.Second
	// listedAtOnce is how many posts are read at once.
	listedAtOnce = 500
	// preparedEvery paces the question whether all posts are prepared, which costs the API server something.
	preparedEvery = 2 * time.Second
)

// runB2M compares delivering posts that show a picture, to an account of X and one of Threads each. Herald and the bare
// loop upload the pictures ahead of their time, so that only what follows the due time is compared.
func runB2M(ctx context.Context, s *session, r *report) error {
	b := &b2{
		session: s, id: "B2M", choose: oneOfEach, platforms: []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads},
		lead: 10*time.Second + time.Duration(s.b2Posts)*leadM,
	}
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	var err error
	if b.teams, err = s.mixedTeams(ctx); err != nil {
		return err
	}
	if b.pictures, err = s.pictures(ctx, b.teams); err != nil {
		return err
	}
	b.sample, err = s.sample(ctx, func(name string) *v1alpha1.Post {
		team := b.teams[0]
		post := duePost(team, 0, len(team.Connections)/2, time.Now().Add(sampleLead), name)
		show(post, b.pictures[team.Namespace][0].name)
		return post
	})
	if err != nil {
		return err
	}
	if err := errors.Join(s.stack.StopHerald(), s.clear(ctx)); err != nil {
		return err
	}
	return b.report(ctx, r, "posts of a picture to X and Threads settled a second, uploaded before")
}

// mixedTeams connects accounts of Threads and returns the teams with half of their accounts of X and as many of Threads.
// Herald must be started.
func (s *session) mixedTeams(ctx context.Context) ([]stack.Team, error) {
	if s.mixed != nil {
		return s.mixed, nil
	}
	teams := make([]stack.Team, len(s.connected))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(setupAtOnce)
	for t, team := range s.connected {
		half := max(len(team.Connections)/2, 1)
		teams[t] = stack.Team{Namespace: team.Namespace, Token: team.Token, Connections: make([]stack.Connection, 2*half)}
		copy(teams[t].Connections, team.Connections[:half])
		for i := range half {
			group.Go(func() (err error) {
				teams[t].Connections[half+i], err = s.stack.ConnectTo(inner, v1alpha1.PlatformThreads, team.Namespace, fmt.Sprint(17_800_000_000_000_000+t*half+i))
				return err
			})
		}
	}
	err := group.Wait()
	if err == nil {
		s.mixed = teams
	}
	return teams, err
}

// oneOfEach draws an account of the first half and one of the second.
func oneOfEach(draw *rand.Rand, accounts int) (first, second int) {
	return draw.IntN(accounts / 2), accounts/2 + draw.IntN(accounts/2)
}

// awaitPrepared waits until all posts are prepared.
func (b *b2) awaitPrepared(ctx context.Context) error {
	for {
		left, err := b.unprepared(ctx)
		if err != nil || left == 0 {
			return err
		}
		if err := waitUntil(ctx, time.Now().Add(preparedEvery)); err != nil {
			return fmt.Errorf("%d posts are not prepared: %w", left, err)
		}
	}
}

// unprepared is how many posts are not prepared.
func (s *session) unprepared(ctx context.Context) (left int, err error) {
	var list v1alpha1.PostList
	for {
		if err := s.stack.Kubernetes.List(ctx, &list, client.Limit(listedAtOnce), client.Continue(list.Continue)); err != nil {
			return 0, err
		}
		for i := range list.Items {
			if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionPrepared) {
				left++
			}
		}
		if list.Continue == "" {
			return left, nil
		}
	}
}
