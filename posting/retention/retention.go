// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention says how long a finished post stays in the cluster, and how long in
// the archive. It does no I/O and knows no clock.
package retention

import (
	"cmp"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Times are how long finished posts are kept, counted from when they were finished.
type Times struct {
	// InCluster is how long they stay in the cluster as resources.
	InCluster time.Duration
	// Archived is how long they can be read after that, from the archive; at least
	// InCluster, since what is archived is needed while the post is there.
	Archived time.Duration
	// Applied says whether posts leave the cluster that were applied.
	Applied bool
}

// Policy is what an installation says for its teams.
type Policy struct {
	// InCluster and Archived are for teams that say nothing.
	InCluster, Archived time.Duration
	// LeastInCluster is the shortest InCluster of any team: whoever says less has this.
	LeastInCluster time.Duration
}

// Of returns the times of a team. A namespace without a team has those of the installation.
func (p Policy) Of(team *v1alpha1.Team) Times {
	var spec v1alpha1.TeamSpec
	if team != nil {
		spec = team.Spec
	}
	times := Times{
		InCluster: max(or(spec.Retention.InCluster, p.InCluster), p.LeastInCluster),
		Archived:  or(cmp.Or(spec.Retention.Archived, spec.TTLAfterFinished), p.Archived),
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

// Evicts reports whether a post ever leaves the cluster by its time: not one that was
// applied, unless its team says so. Labels are those of the post.
func (t Times) Evicts(labels map[string]string) bool {
	return t.Applied || labels[v1alpha1.OriginLabel] != ""
}

// least is how long a record is kept at least, where something may still come back for it:
// a request with an Idempotency-Key, from the creation of its post on, and a GitOps tool
// that puts a post back which it applied, from when that left the cluster on.
const least = 24 * time.Hour

// ArchivedUntil returns until when a finished post is archived that leaves the cluster now.
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

// FinishedAt is when a post was finished. Of one that an older version finished, which did
// not note it, that is the latest moment that its targets and conditions name.
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
