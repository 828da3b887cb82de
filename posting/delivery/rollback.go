// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
)

// Rollback shows whether the cluster was restored to an earlier state, whose status may lack later events.
type Rollback struct {
	// DetectedAt is the time when the last rollback was detected, or zero if there was none.
	DetectedAt time.Time
	// UncertainSince is the time since which a rollback cannot be ruled out, or zero. Problem is the reason.
	UncertainSince time.Time
	Problem        string
}

// checkRollback records the outcome of a post after a rollback, before any other decision. It returns no actions if the
// post may proceed.
func (f *Facts) checkRollback() []Action {
	if f.Unowned && f.Cancelled() && !f.Post.Status.Finished && f.Post.DeletionTimestamp.IsZero() && f.rollbackUnresolved() {
		return f.cancelUnowned()
	}
	if f.willNotSend() {
		return nil
	}
	if !f.rollbackUnresolved() {
		if !existedAt(f.Post, f.Rollback.UncertainSince) {
			return nil
		}
		return f.deferForRollback(f.Rollback.UncertainSince, "it is unknown whether the cluster was restored to an earlier state, in which this post was not published yet: "+f.Rollback.Problem)
	}
	switch f.Earlier.State {
	case EarlierNotFetched:
		return []Action{FindEarlier{}}
	case EarlierUnavailable:
		return f.deferForRollback(f.Rollback.DetectedAt, "the outcome of this post before the cluster was restored to an earlier state cannot be looked up: "+f.Earlier.Problem)
	case EarlierFetched:
		if f.wasCancelled(f.Post.UID) {
			known := f.knownBefore()
			known.Rewound = v1alpha1.NewTimePtr(f.Rollback.DetectedAt)
			return f.cancelAgain(&known)
		}
		return f.recordRollback()
	case EarlierDisabled:
	}
	return nil
}

// deferForRollback makes a post wait if it is due, answered by a user, or cancelled. A cancellation is final, so it is
// recorded only once a lookup has shown that the post is not published. Other posts are looked up later. The wait
// counts from since, because the post's own deadline may already have passed.
func (f *Facts) deferForRollback(since time.Time, problem string) []Action {
	if f.Post.Status.Finished || f.Cancelled() && !f.anyOpen() {
		return []Action{f.waitCancelled()}
	}
	if f.Post.Spec.Draft || f.UntilDue(f.Now) > 0 {
		return nil
	}
	if actions := f.lookupOpenFirst(); actions != nil {
		return actions
	}
	var end *v1alpha1.Blocked
	if !f.Due().After(since) {
		end = &maybePublished
	}
	return f.waitForRecord(since.Add(f.Settings.StartingDeadline), end, problem)
}

// cancelUnowned makes a post wait if it was cancelled after a rollback, in a namespace whose team is not ready: only
// the team's archive shows whether it was published. After the deadline, the targets become undecided.
func (f *Facts) cancelUnowned() []Action {
	if by := f.Rollback.DetectedAt.Add(f.Settings.StartingDeadline); f.Now.Before(by) {
		return []Action{Wait{Until: by, ForInputs: true}}
	}
	if f.Due().After(f.Rollback.DetectedAt) {
		return nil
	}
	known := f.knownBefore()
	known.Rewound = v1alpha1.NewTimePtr(f.Rollback.DetectedAt)
	f.Post.Status.Earlier = &known
	return f.markUndecided(maybePublished)
}

func (f *Facts) knownBefore() v1alpha1.EarlierPost {
	object := string(f.Post.UID)
	if earlier := f.Post.Status.Earlier; earlier != nil && earlier.Object == object {
		return *earlier.DeepCopy()
	}
	return v1alpha1.EarlierPost{Object: object}
}

// willNotSend reports whether nothing will be sent for a post: it is finished, it is being deleted, or no team owns its
// namespace. A user's answer about a finished post is still handled. If a post was cancelled but that is not recorded,
// it may have been published.
func (f *Facts) willNotSend() bool {
	_, answered := f.Post.Annotations[v1alpha1.SettleAnnotation]
	return f.Unowned || !f.Post.DeletionTimestamp.IsZero() || f.Post.Status.Finished && !answered
}

// rollbackUnresolved reports whether the post is older than the last rollback and has not been looked up since.
func (f *Facts) rollbackUnresolved() bool {
	if !existedAt(f.Post, f.Rollback.DetectedAt) {
		return false
	}
	earlier := f.Post.Status.Earlier
	return earlier == nil || earlier.Object != string(f.Post.UID) || earlier.Rewound == nil || earlier.Rewound.Before(f.Rollback.DetectedAt)
}

// existedAt reports whether a post existed at the given time, to the second, which is the resolution of times in
// Kubernetes.
func existedAt(post *v1alpha1.Post, at time.Time) bool {
	return !at.IsZero() && !post.CreationTimestamp.After(at)
}

// recordRollback records the archive's response about a post after a rollback. The post's own record contains the
// outcome of each target. If there is no record and the post was due before the rollback was detected, the targets
// become undecided, because the post may have been published.
func (f *Facts) recordRollback() []Action {
	post, found := f.Post, f.Earlier.Record
	known := f.knownBefore()
	own := found != nil && found.Covers(post.UID)
	var actions []Action
	if found != nil && (own || string(found.UID) != known.Record) {
		adopted, withheld := f.adopt(&known)
		switch {
		case withheld == nil:
		case f.Cancelled(): // Waiting could be endless, because the connection may never be created.
			actions = f.markUndecided(maybePublished)
		default:
			return withheld
		}
		if adopted {
			actions = append(actions, Write{Event{Warning: true, Reason: v1alpha1.ReasonAlreadyPublished, Message: alreadyPublishedMessage(post)}})
		}
	}
	if !own && !post.Spec.Draft && !f.Due().After(f.Rollback.DetectedAt) {
		post.Status.Earlier = &known
		if first := f.lookupOpenFirst(); first != nil {
			return first
		}
		actions = append(actions, f.markUndecided(maybePublished)...)
	}
	known.Rewound = v1alpha1.NewTimePtr(f.Rollback.DetectedAt)
	post.Status.Earlier = &known
	switch {
	case len(actions) > 0 && f.Cancelled():
		f.failUnsent()
	case len(actions) == 0 && f.Cancelled() && f.Unsent() && len(undecided(post)) == 0:
		return []Action{cancel()}
	}
	f.resume()
	if len(actions) == 0 {
		return []Action{Write{}}
	}
	return actions
}

// failUnsent fails those targets of a cancelled post that are neither settled nor open. Because another target may be
// published, the post as a whole can no longer be cancelled.
func (f *Facts) failUnsent() {
	for i := range f.Post.Spec.Targets {
		if t := f.Target(i); !attempt.Settled(t) && !attempt.IsOpen(t.Attempt) {
			fail(t, notSentAnyMore)
		}
	}
}

var notSentAnyMore = v1alpha1.Blocked{
	Reason: v1alpha1.ReasonCancelled, Problem: "not sent: the post was cancelled", Remedy: "create a new post to publish it",
}

// recordUncertain handles a post that is deleted after a possible rollback and before its lookup. It marks the targets
// as undecided, so that the record shows an unknown outcome and the user is asked if the post is applied again. Merging
// with the stored record keeps the outcomes that are already in it.
func (f *Facts) recordUncertain() []Action {
	post, by := f.Post, f.Rollback.UncertainSince
	if f.rollbackUnresolved() && f.Rollback.DetectedAt.After(by) {
		by = f.Rollback.DetectedAt
	}
	if f.Unowned || f.NamespaceTerminating || post.Spec.Draft || post.Status.Finished || !existedAt(post, by) || f.Due().After(by) {
		return nil
	}
	return f.markUndecided(maybePublished)
}

// maybePublished blocks a post that may have been published despite the state in the cluster.
var maybePublished = v1alpha1.Blocked{
	Reason: v1alpha1.ReasonOutcomeUnknown,
	Problem: "not sent: the cluster was, or may have been, restored to an earlier state, such as an etcd snapshot, in which this post was not published yet, and " +
		"it is unknown whether it was published since",
	Remedy: "check the account, then answer as described in the " + v1alpha1.ConditionOutcomeUnknown + " condition",
}

// resume continues a delivery that had started and was waiting for its record.
func (f *Facts) resume() {
	accepted := meta.FindStatusCondition(f.Post.Status.Conditions, v1alpha1.ConditionAccepted)
	if f.Started() && accepted != nil && accepted.Reason == v1alpha1.ReasonRecordUnavailable {
		f.admit()
	}
}
