// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention determines how long a finished post is kept in the cluster and in the archive. It does not perform
// I/O or read a clock.
package retention

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Times are the periods for which finished posts are kept, counted from when they were finished.
type Times struct {
	// InCluster is the period for which the resource is kept in the cluster.
	InCluster time.Duration
	// Archived is the total period for which the post can be read, first in the cluster and then in the archive. It is at
	// least InCluster, because an existing post needs its archived record.
	Archived time.Duration
	// Applied means that applied posts are removed from the cluster too.
	Applied bool
}

// Policy contains the installation's defaults.
type Policy struct {
	// InCluster and Archived are the defaults for teams that do not set them.
	InCluster, Archived time.Duration
	// LeastInCluster is the minimum of InCluster for every team. Lower values are raised to it.
	LeastInCluster time.Duration
}

// Of returns a team's retention times. A namespace without a team has the installation's defaults.
func (p Policy) Of(team *v1alpha1.Team) Times {
	var spec v1alpha1.TeamSpec
	if team != nil {
		spec = team.Spec
	}
	times := Times{
		InCluster: max(or(spec.Retention.InCluster, p.InCluster), p.LeastInCluster),
		Archived:  or(spec.Retention.Archived, p.Archived),
		Applied:   spec.Retention.Applied,
	}
	times.Archived = max(times.Archived, times.InCluster)
	return times
}

func or(said *v1alpha1.Duration, otherwise time.Duration) time.Duration {
	if said == nil {
		return otherwise
	}
	return said.Duration
}

// Evicts reports whether a post is removed from the cluster when its time is up. Posts from the API, the web
// application and schedules are: nothing creates them again. Applied posts are removed only if their team has enabled
// that. labels are the post's labels.
func (t Times) Evicts(labels map[string]string) bool {
	return t.Applied || labels[v1alpha1.OriginLabel] != "" || labels[v1alpha1.ScheduleLabel] != ""
}

// least is the minimum time that a record is kept. For a request with an Idempotency-Key it starts when the post is
// created; for a GitOps tool that applies the post again, when the post is removed from the cluster.
const least = 24 * time.Hour

// ArchivedUntil returns the time until which a finished post is kept in the archive if it is removed from the cluster
// now.
func (t Times) ArchivedUntil(post *v1alpha1.Post, now time.Time) time.Time {
	until := FinishedAt(post).Add(t.Archived)
	if post.Annotations[v1alpha1.RequestAnnotation] != "" {
		until = latest(until, post.CreationTimestamp.Add(least))
	}
	if post.Labels[v1alpha1.OriginLabel] == "" {
		until = latest(until, now.Add(least))
	}
	return until
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// FinishedAt returns the time when a post was finished. For posts from older versions, which did not record it, it
// returns the latest time in their targets and conditions.
func FinishedAt(post *v1alpha1.Post) time.Time {
	if post.Status.FinishedAt != nil {
		return post.Status.FinishedAt.Time
	}
	at := post.CreationTimestamp.Time
	for i := range post.Status.Targets {
		if posted := post.Status.Targets[i].PostedAt; posted != nil {
			at = latest(at, posted.Time)
		}
	}
	for i := range post.Status.Conditions {
		at = latest(at, post.Status.Conditions[i].LastTransitionTime.Time)
	}
	return at
}
