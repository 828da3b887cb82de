// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention determines how long a finished post is kept in the cluster and in the archive. It does no I/O and reads no clock.
package retention

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Times are the retention times of finished posts, counted from their completion.
type Times struct {
	// InCluster is the retention time as a resource in the cluster.
	InCluster time.Duration
	// Archived is the total readable time, in the cluster and then in the archive. It is at least InCluster, because an existing post needs
	// its archived record.
	Archived time.Duration
	// Applied also removes applied posts from the cluster.
	Applied bool
}

// Policy holds an installation's defaults.
type Policy struct {
	// InCluster and Archived are the defaults for teams without their own values.
	InCluster, Archived time.Duration
	// LeastInCluster is every team's minimum InCluster. Lower values are raised to it.
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

// Evicts reports whether a post leaves the cluster after its retention time. Applied posts do only if their team enables it. labels are the
// post's labels.
func (t Times) Evicts(labels map[string]string) bool {
	return t.Applied || labels[v1alpha1.OriginLabel] != ""
}

// least is the minimum retention time of a record: for a request with an Idempotency-Key, from its post's creation, and for a GitOps tool
// that reapplies a post, from its removal from the cluster.
const least = 24 * time.Hour

// ArchivedUntil returns the end of a finished post's archive retention if it leaves the cluster now.
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

// FinishedAt returns when a post was finished. For a post from an older version that did not record it, it is the latest time in its
// targets and conditions.
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
