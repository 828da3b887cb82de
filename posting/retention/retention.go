// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention determines how long a finished post is kept in the cluster and in the archive. It does no I/O and
// reads no clock.
package retention

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Times are the retention times of finished posts, counted from when they were finished.
type Times struct {
	// InCluster is how long they are kept in the cluster as resources.
	InCluster time.Duration
	// Archived is how long they can be read, first in the cluster and then in the archive. It is at least InCluster,
	// because the archived record is needed while the post exists.
	Archived time.Duration
	// Applied is set if applied posts leave the cluster too.
	Applied bool
}

// Policy is the default of an installation.
type Policy struct {
	// InCluster and Archived are the defaults for teams without their own values.
	InCluster, Archived time.Duration
	// LeastInCluster is the minimum InCluster of every team. Lower values are raised to it.
	LeastInCluster time.Duration
}

// Of returns the times of a team. A namespace without a team has the defaults of the installation.
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

// Evicts reports whether a post leaves the cluster after its retention time. Applied posts do not, unless their team
// sets it. labels are the labels of the post.
func (t Times) Evicts(labels map[string]string) bool {
	return t.Applied || labels[v1alpha1.OriginLabel] != ""
}

// least is the minimum retention of a record that may still be needed: for a request with an Idempotency-Key, counted
// from the creation of its post, and for a GitOps tool that applies a post again, counted from when it left the
// cluster.
const least = 24 * time.Hour

// ArchivedUntil returns until when a finished post is archived if it leaves the cluster now.
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

// FinishedAt returns when a post was finished. For a post from an older version, which did not record it, that is the
// latest time in its targets and conditions.
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
