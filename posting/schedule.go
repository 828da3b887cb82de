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

// Due returns the time when a post is due: its scheduled time or, if it has none, its creation time.
func (v View) Due() time.Time {
	if v.Post.Spec.ScheduledAt != nil {
		return v.Post.Spec.ScheduledAt.Time
	}
	return v.Post.CreationTimestamp.Time
}

// UntilDue returns the time left until a post is due. It is zero or negative if the post is due, and zero for an
// immediate post.
func (v View) UntilDue(now time.Time) time.Duration {
	if v.Post.Spec.ScheduledAt == nil {
		return 0
	}
	return v.Post.Spec.ScheduledAt.Sub(now)
}

// TryUntil returns a target's deadline: the scheduled or creation time plus the starting deadline. If delivery starts
// much later, because the post was a draft or no manager was running, the deadline counts from now. fixed is then
// false: each call returns a different time.
func (v View) TryUntil(now time.Time, startingDeadline time.Duration) (until time.Time, fixed bool) {
	if v.Post.Spec.ScheduledAt != nil {
		return v.Post.Spec.ScheduledAt.Add(startingDeadline), true
	}
	until = v.Post.CreationTimestamp.Add(startingDeadline)
	if wasKept := len(v.Post.Status.Targets) > 0 && v.Post.Status.ObservedGeneration > 0 && v.Post.Generation > 1; wasKept || now.After(until) {
		return now.Add(startingDeadline), false
	}
	return until, true
}

// Restored reports whether the object is a backup copy of a post created through the apiserver. Copies lose their
// delivery history. The apiserver records when each post was created, and a copy's creationTimestamp is clearly later.
func (v View) Restored() bool {
	noted, ok := v.born()
	return ok && v.Post.CreationTimestamp.Sub(noted) > clockMargin
}

// createWithin is the maximum time between the recorded creation time and the creation of the object by the apiserver.
const createWithin = 5 * time.Second

// Recreated reports whether the object of a post from the apiserver may have been created by another client, for
// instance by a user who deleted it and applied it again. Unlike Restored, it is not proof, because creation may be
// slow, but it is a reason to look up an earlier post. A recorded time later than the object's creation counts too:
// either the clocks differ by more than createWithin, or another client wrote the annotation.
func (v View) Recreated() bool {
	noted, ok := v.born()
	return ok && v.Post.CreationTimestamp.Sub(noted).Abs() > createWithin
}

// RecreatedVisibleFrom returns the time from which Recreated recognizes an object that replaces a post with the same
// annotations, or zero if it always does. A partly published post is kept until then. margin is the largest difference
// between the clocks of this process and Kubernetes.
func (v View) RecreatedVisibleFrom(margin time.Duration) time.Time {
	noted, ok := v.born()
	if age := v.Post.CreationTimestamp.Sub(noted); !ok || age > createWithin || age < -clockMargin {
		return time.Time{}
	}
	// Kubernetes truncates times to seconds.
	return noted.Add(createWithin + time.Second + margin)
}

// born returns a post's creation time as recorded by the apiserver.
func (v View) born() (time.Time, bool) {
	noted, ok := v.Post.Annotations[v1alpha1.BornAnnotation]
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, noted)
	return at.UTC(), err == nil
}
