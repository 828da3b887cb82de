// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// clockMargin is how far an object's creation and its noted birth may lie apart:
// the clocks of an apiserver replica and of the Kubernetes API differ.
const clockMargin = time.Minute

// Due is when a post is to be published: its scheduled time, or its creation.
func Due(post *v1alpha1.Post) time.Time {
	if post.Spec.ScheduledAt != nil {
		return post.Spec.ScheduledAt.Time
	}
	return post.CreationTimestamp.Time
}

// UntilDue is how long it is until a post is due; zero or less once it is.
// An immediate post never waits.
func UntilDue(post *v1alpha1.Post, now time.Time) time.Duration {
	if post.Spec.ScheduledAt == nil {
		return 0
	}
	return post.Spec.ScheduledAt.Sub(now)
}

// TryUntil is how long a target is tried: the starting deadline, counted from
// the scheduled time or, for an immediate post, from its creation. A post that
// is first worked on much later, because it was a draft or no manager was
// running, has the deadline from then on; fixed is false in that case: another
// call gives another time.
func TryUntil(post *v1alpha1.Post, now time.Time, startingDeadline time.Duration) (until time.Time, fixed bool) {
	if post.Spec.ScheduledAt != nil {
		return post.Spec.ScheduledAt.Add(startingDeadline), true
	}
	until = post.CreationTimestamp.Add(startingDeadline)
	if wasKept := len(post.Status.Targets) > 0 && post.Status.ObservedGeneration > 0 && post.Generation > 1; wasKept || now.After(until) {
		return now.Add(startingDeadline), false
	}
	return until, true
}

// Restored reports whether the object is a copy, made anew from a backup, of a
// post that came through the apiserver. A copy has lost its delivery history.
// The apiserver notes the birth of each post; a copy is clearly younger.
func Restored(post *v1alpha1.Post) bool {
	noted, ok := born(post)
	return ok && post.CreationTimestamp.Sub(noted) > clockMargin
}

// createWithin is how long the apiserver may take to create a post whose birth it has noted.
const createWithin = 5 * time.Second

// Recreated reports whether somebody else than the apiserver may have created the object of a
// post that came through it, such as a person who deletes a post and applies it again. That
// it took long to create is no proof, as Restored is, but reason to look for an earlier post.
// So is a birth that is noted for later: the clocks are further apart than that, or somebody
// else wrote the note.
func Recreated(post *v1alpha1.Post) bool {
	noted, ok := born(post)
	return ok && post.CreationTimestamp.Sub(noted).Abs() > createWithin
}

// RecreatedVisibleFrom is from when on an object that takes the place of a post's, with its
// annotations, is Remade; zero if it is at any time. A post of which something may be out stays
// until then. margin is how far the clocks of this process and of Kubernetes may differ.
func RecreatedVisibleFrom(post *v1alpha1.Post, margin time.Duration) time.Time {
	noted, ok := born(post)
	if age := post.CreationTimestamp.Sub(noted); !ok || age > createWithin || age < -clockMargin {
		return time.Time{}
	}
	// Kubernetes drops parts of a second.
	return noted.Add(createWithin + time.Second + margin)
}

// born reads what the apiserver noted at a post's birth.
func born(post *v1alpha1.Post) (time.Time, bool) {
	noted, ok := post.Annotations[v1alpha1.BornAnnotation]
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, noted)
	return at.UTC(), err == nil
}
