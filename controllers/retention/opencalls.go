// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/retention"
)

const (
	// lookupWindow is for how long after it was finished a post may be needed: a manager that looks
	// for a publication whose answer was lost must not take that of another post for it. It
	// knows those by the posts of the cluster, and forgets them after a day.
	lookupWindow = 24 * time.Hour
	// clocksDiffer is how far apart the times of a claim and of an end may be that were noted
	// by two processes.
	clocksDiffer = time.Minute
)

// openSince is since when calls of a team's posts are open; zero if none is.
type openSince time.Time

// oldestOpenCall finds the oldest open call of the posts of a namespace. It is asked only where posts
// leave while a lookup may need them.
func (s *Sweeper) oldestOpenCall(ctx context.Context, namespace string, times retention.Times) (openSince, error) {
	if times.InCluster >= lookupWindow {
		return openSince{}, nil
	}
	var posts v1alpha1.PostList
	// From the cache, which holds those that are not finished; they are only read.
	if err := s.Client.List(ctx, &posts, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return openSince{}, fmt.Errorf("cannot see which calls of namespace %s are open: %w", namespace, err)
	}
	var oldest time.Time
	for i := range posts.Items {
		for t := range posts.Items[i].Status.Targets {
			a := posts.Items[i].Status.Targets[t].Attempt
			if attempt.IsOpen(a) && (oldest.IsZero() || a.StartedAt.Before(oldest)) {
				oldest = a.StartedAt.Time
			}
		}
	}
	return openSince(oldest), nil
}

// concerns reports whether a finished post may have been published since a call began that is
// still open, so that it stays.
func (d openSince) concerns(post *v1alpha1.Post, now time.Time) bool {
	finished := retention.FinishedAt(post)
	return !time.Time(d).IsZero() && now.Sub(finished) < lookupWindow && !finished.Before(time.Time(d).Add(-clocksDiffer))
}
