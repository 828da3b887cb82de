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
	// lookupWindow is how long a finished post may be needed for lookups. A manager that looks for a publication whose
	// response was lost must not mistake another post's publication for it. It recognizes those by the posts in the
	// cluster, and stops looking after a day.
	lookupWindow = 24 * time.Hour
	// clocksDiffer is the allowed clock skew between the processes that recorded a claim and a finish time.
	clocksDiffer = time.Minute
)

// openSince is the start of the oldest open call for a team's posts, or zero if there is none.
type openSince time.Time

// oldestOpenCall returns the start of a namespace's oldest open call. It matters if posts leave within lookupWindow.
func (s *Sweeper) oldestOpenCall(ctx context.Context, namespace string, times retention.Times) (openSince, error) {
	if times.InCluster >= lookupWindow {
		return openSince{}, nil
	}
	var posts v1alpha1.PostList
	// The cache holds the unfinished posts. They are not modified.
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

// concerns reports whether a finished post may have been published after the open call started, so that it must be
// kept.
func (d openSince) concerns(post *v1alpha1.Post, now time.Time) bool {
	finished := retention.FinishedAt(post)
	return !time.Time(d).IsZero() && now.Sub(finished) < lookupWindow && !finished.Before(time.Time(d).Add(-clocksDiffer))
}
