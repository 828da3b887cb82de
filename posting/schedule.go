// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// clockMargin is the maximum difference between an object's creationTimestamp and the creation time recorded by the apiserver, which have
// different clocks.
const clockMargin = time.Minute

// Due returns a post's due time: its scheduled time, or its creation time.
func Due(post *v1alpha1.Post) time.Time {
	if post.Spec.ScheduledAt != nil {
		return post.Spec.ScheduledAt.Time
	}
	return post.CreationTimestamp.Time
}

// UntilDue returns the remaining time until a post is due. It is zero or negative for a due post, and zero for an immediate post.
func UntilDue(post *v1alpha1.Post, now time.Time) time.Duration {
	if post.Spec.ScheduledAt == nil {
		return 0
	}
	return post.Spec.ScheduledAt.Sub(now)
}

// TryUntil returns a target's deadline: the scheduled or creation time plus the starting deadline. If delivery starts much later, because
// the post was a draft or no manager was running, the deadline is relative to now. fixed is false in that case, because another call
// returns another time.
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

// Restored reports whether the object is a backup copy of a post created through the apiserver. Copies lose their delivery history. The
// apiserver records each post's creation time, and a copy's creationTimestamp is clearly newer.
func Restored(post *v1alpha1.Post) bool {
	noted, ok := born(post)
	return ok && post.CreationTimestamp.Sub(noted) > clockMargin
}

// createWithin is the maximum time between the recorded creation time and the object's creation by the apiserver.
const createWithin = 5 * time.Second

// Recreated reports whether another client may have created the object of a post from the apiserver, for instance a user who deleted and
// reapplied it. Unlike Restored, it is no proof, because a creation may be slow, but it is a reason to look up an earlier post. A recorded
// time after the object's creation also counts: either the clocks differ by more than createWithin, or another client wrote the annotation.
func Recreated(post *v1alpha1.Post) bool {
	noted, ok := born(post)
	return ok && post.CreationTimestamp.Sub(noted).Abs() > createWithin
}

// RecreatedVisibleFrom returns the time from which a post's replacement, with the same annotations, is recognized by Recreated, or zero if
// it always is. A partly published post is kept until then. margin is the maximum clock difference between this process and Kubernetes.
func RecreatedVisibleFrom(post *v1alpha1.Post, margin time.Duration) time.Time {
	noted, ok := born(post)
	if age := post.CreationTimestamp.Sub(noted); !ok || age > createWithin || age < -clockMargin {
		return time.Time{}
	}
	// Kubernetes truncates times to seconds.
	return noted.Add(createWithin + time.Second + margin)
}

// born returns a post's creation time as recorded by the apiserver.
func born(post *v1alpha1.Post) (time.Time, bool) {
	noted, ok := post.Annotations[v1alpha1.BornAnnotation]
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, noted)
	return at.UTC(), err == nil
}
