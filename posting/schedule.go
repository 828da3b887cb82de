// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// clockMargin is the largest difference between an object's creationTimestamp and the creation time that the apiserver
// recorded, which come from different clocks.
const clockMargin = time.Minute

// Due returns when a post is due: at its scheduled time or, if it has none, when it was created.
func Due(post *v1alpha1.Post) time.Time {
	if post.Spec.ScheduledAt != nil {
		return post.Spec.ScheduledAt.Time
	}
	return post.CreationTimestamp.Time
}

// UntilDue returns how long it is until a post is due: zero or less if it is due, zero for an immediate post.
func UntilDue(post *v1alpha1.Post, now time.Time) time.Duration {
	if post.Spec.ScheduledAt == nil {
		return 0
	}
	return post.Spec.ScheduledAt.Sub(now)
}

// TryUntil returns a target's deadline: the scheduled or creation time plus the starting deadline. If delivery starts
// much later, because the post was a draft or no manager was running, the deadline counts from now. fixed is then
// false, because another call returns another time.
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

// Restored reports whether the object is a backup copy of a post created through the apiserver. Copies lose their
// delivery history. The apiserver records when each post was created, and a copy's creationTimestamp is clearly later.
func Restored(post *v1alpha1.Post) bool {
	noted, ok := born(post)
	return ok && post.CreationTimestamp.Sub(noted) > clockMargin
}

// createWithin is the maximum time between the recorded creation time and when the apiserver creates the object.
const createWithin = 5 * time.Second

// Recreated reports whether the object of a post from the apiserver may have been created by another client, for
// instance by a user who deleted it and applied it again. Unlike Restored, it proves nothing, because creating may be
// slow, but it is a reason to look up an earlier post. A recorded time after the object was created counts too: either
// the clocks differ by more than createWithin, or another client wrote the annotation.
func Recreated(post *v1alpha1.Post) bool {
	noted, ok := born(post)
	return ok && post.CreationTimestamp.Sub(noted).Abs() > createWithin
}

// RecreatedVisibleFrom returns from when on Recreated recognizes an object that replaces a post with the same
// annotations, or zero if it always does. A post that is published in part is kept until then. margin is the largest
// difference between the clocks of this process and Kubernetes.
func RecreatedVisibleFrom(post *v1alpha1.Post, margin time.Duration) time.Time {
	noted, ok := born(post)
	if age := post.CreationTimestamp.Sub(noted); !ok || age > createWithin || age < -clockMargin {
		return time.Time{}
	}
	// Kubernetes truncates times to seconds.
	return noted.Add(createWithin + time.Second + margin)
}

func born(post *v1alpha1.Post) (time.Time, bool) {
	noted, ok := post.Annotations[v1alpha1.BornAnnotation]
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, noted)
	return at.UTC(), err == nil
}
