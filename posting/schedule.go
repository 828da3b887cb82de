// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// clockMargin is the maximum difference between an object's creation time and the creation time that the apiserver
// recorded. The clocks of an apiserver replica and of the Kubernetes API differ.
const clockMargin = time.Minute

// Due returns when a post is due: its scheduled time, or its creation.
func Due(post *v1alpha1.Post) time.Time {
	if post.Spec.ScheduledAt != nil {
		return post.Spec.ScheduledAt.Time
	}
	return post.CreationTimestamp.Time
}

// UntilDue returns the time until a post is due. It is zero or negative once the post is due, and zero for an
// immediate post.
func UntilDue(post *v1alpha1.Post, now time.Time) time.Duration {
	if post.Spec.ScheduledAt == nil {
		return 0
	}
	return post.Spec.ScheduledAt.Sub(now)
}

// TryUntil returns the deadline of a target: the starting deadline, counted from the scheduled time or, for an
// immediate post, from its creation. For a post whose delivery starts much later, because it was a draft or no manager
// was running, the deadline counts from now. fixed is then false, because another call returns another time.
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

// Restored reports whether the object is a copy from a backup of a post that came through the apiserver. A copy has
// lost its delivery history. The apiserver records the creation time of each post, and a copy is clearly younger.
func Restored(post *v1alpha1.Post) bool {
	noted, ok := born(post)
	return ok && post.CreationTimestamp.Sub(noted) > clockMargin
}

// createWithin is the maximum time between the recorded creation time and the creation of the object by the apiserver.
const createWithin = 5 * time.Second

// Recreated reports whether the object of a post that came through the apiserver may have been created by another
// client, such as a person who deletes a post and applies it again. A slow creation is no proof, unlike Restored, but
// a reason to look for an earlier post. The same applies to a recorded time after the object's creation: the clocks
// differ by more than createWithin, or another client wrote the annotation.
func Recreated(post *v1alpha1.Post) bool {
	noted, ok := born(post)
	return ok && post.CreationTimestamp.Sub(noted).Abs() > createWithin
}

// RecreatedVisibleFrom returns when a replacement of a post's object, with its annotations, starts to be Recreated, or
// zero if it is at any time. A post that may be published in part is kept until then. margin is the maximum difference
// between the clocks of this process and of Kubernetes.
func RecreatedVisibleFrom(post *v1alpha1.Post, margin time.Duration) time.Time {
	noted, ok := born(post)
	if age := post.CreationTimestamp.Sub(noted); !ok || age > createWithin || age < -clockMargin {
		return time.Time{}
	}
	// Kubernetes truncates times to seconds.
	return noted.Add(createWithin + time.Second + margin)
}

// born returns the creation time that the apiserver recorded for a post.
func born(post *v1alpha1.Post) (time.Time, bool) {
	noted, ok := post.Annotations[v1alpha1.BornAnnotation]
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, noted)
	return at.UTC(), err == nil
}
