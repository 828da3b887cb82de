// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Rollback is what is known of the cluster having been put back to an earlier state, such as
// a snapshot of its etcd. What posts from before say may be less than what happened.
type Rollback struct {
	// DetectedAt is when that was noticed last; zero if it never was.
	DetectedAt time.Time
	// UncertainSince is since when it cannot be told; zero if it can. Problem says why.
	UncertainSince time.Time
	Problem        string
}

// checkRollback finds out, before anything more is done for a post of a cluster that was put back,
// what became of it since, and enters it. It returns no actions if the post goes on.
func (f *Facts) checkRollback() []Action {
	if f.Unowned && posting.Cancelled(f.Post) && !f.Post.Status.Finished && f.Post.DeletionTimestamp.IsZero() && f.rollbackUnresolved() {
		return f.cancelUnowned()
	}
	if f.willNotSend() {
		return nil
	}
	if !f.rollbackUnresolved() {
		if !existedAt(f.Post, f.Rollback.UncertainSince) {
			return nil
		}
		return f.deferForRollback(f.Rollback.UncertainSince, "whether the cluster was put back to an earlier state, in which this post was not published yet, cannot be told: "+f.Rollback.Problem)
	}
	switch f.Earlier.State {
	case EarlierNotFetched:
		return []Action{FindEarlier{}}
	case EarlierUnavailable:
		return f.deferForRollback(f.Rollback.DetectedAt, "what became of this post before the cluster was put back to an earlier state cannot be looked up: "+f.Earlier.Problem)
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

// deferForRollback has a post wait whose time has come, or that a person has answered for or has
// cancelled: it is told to be cancelled, for good, when it is known not to be out. Any other is
// looked up later. since is from when on that is waited for: the post's own time may have been
// over before.
func (f *Facts) deferForRollback(since time.Time, problem string) []Action {
	if f.Post.Status.Finished || posting.Cancelled(f.Post) && !f.anyOpen() {
		return []Action{f.waitCancelled()}
	}
	if f.Post.Spec.Draft || posting.UntilDue(f.Post, f.Now) > 0 {
		return nil
	}
	if actions := f.lookupOpenFirst(); actions != nil {
		return actions
	}
	var end *v1alpha1.Blocked
	if !posting.Due(f.Post).After(since) {
		end = &maybePublished
	}
	return f.waitForRecord(since.Add(f.Settings.StartingDeadline), end, problem)
}

// cancelUnowned has a post wait that was cancelled since its cluster was put back, in a namespace
// whose team is not ready yet: nothing else tells whether it is out. Without one, a person is asked.
func (f *Facts) cancelUnowned() []Action {
	if by := f.Rollback.DetectedAt.Add(f.Settings.StartingDeadline); f.Now.Before(by) {
		return []Action{Wait{Until: by, ForInputs: true}}
	}
	if posting.Due(f.Post).After(f.Rollback.DetectedAt) {
		return nil
	}
	known := f.knownBefore()
	known.Rewound = v1alpha1.NewTimePtr(f.Rollback.DetectedAt)
	f.Post.Status.Earlier = &known
	return f.markUndecided(maybePublished)
}

// knownBefore is what was looked up for this very object.
func (f *Facts) knownBefore() v1alpha1.EarlierPost {
	object := string(f.Post.UID)
	if earlier := f.Post.Status.Earlier; earlier != nil && earlier.Object == object {
		return *earlier.DeepCopy()
	}
	return v1alpha1.EarlierPost{Object: object}
}

// willNotSend reports whether nothing is sent for a post whatever became of it: it is
// finished, or nothing is sent in its namespace. A person's answer about a finished one is another
// matter. One that was cancelled since, and is not told to be, may be out.
func (f *Facts) willNotSend() bool {
	post := f.Post
	_, answered := post.Annotations[v1alpha1.SettleAnnotation]
	return f.Unowned || !post.DeletionTimestamp.IsZero() || post.Status.Finished && !answered
}

// rollbackUnresolved reports whether the post is from before the cluster was put back, and was
// not looked up since that was noticed.
func (f *Facts) rollbackUnresolved() bool {
	if !existedAt(f.Post, f.Rollback.DetectedAt) {
		return false
	}
	earlier := f.Post.Status.Earlier
	return earlier == nil || earlier.Object != string(f.Post.UID) || earlier.Rewound == nil || earlier.Rewound.Before(f.Rollback.DetectedAt)
}

// existedAt reports whether a post was there at a time. Kubernetes keeps seconds: one that was
// created within the same second was.
func existedAt(post *v1alpha1.Post, at time.Time) bool {
	return !at.IsZero() && !post.CreationTimestamp.After(at)
}

// recordRollback enters what the archive has told of a post of a cluster that was put back.
// The post's own record says what became of each target. Where none was kept, the post may
// have gone out if its time had come by when the cluster was found put back: a person is
// asked.
func (f *Facts) recordRollback() []Action {
	post, found := f.Post, f.Earlier.Record
	known := f.knownBefore()
	own := found != nil && found.Covers(post.UID)
	var actions []Action
	if found != nil && (own || string(found.UID) != known.Record) {
		adopted, withheld := f.adopt(&known)
		switch {
		case withheld == nil:
		case posting.Cancelled(post): // It does not wait for a connection that nobody may make.
			actions = f.markUndecided(maybePublished)
		default:
			return withheld
		}
		if adopted {
			actions = append(actions, Write{Event{Warning: true, Reason: v1alpha1.ReasonAlreadyPublished, Message: alreadyPublished(post)}})
		}
	}
	if !own && !post.Spec.Draft && !posting.Due(post).After(f.Rollback.DetectedAt) {
		post.Status.Earlier = &known
		if first := f.lookupOpenFirst(); first != nil {
			return first
		}
		actions = append(actions, f.markUndecided(maybePublished)...)
	}
	known.Rewound = v1alpha1.NewTimePtr(f.Rollback.DetectedAt)
	post.Status.Earlier = &known
	switch {
	case len(actions) > 0 && posting.Cancelled(post):
		f.ensureTargets()
		f.failUnsent()
	case len(actions) == 0 && posting.Cancelled(post) && !posting.Started(post) && len(undecided(post)) == 0:
		return []Action{cancel()}
	}
	f.resume()
	if len(actions) == 0 {
		return []Action{Write{}}
	}
	return actions
}

// failUnsent fails what is neither out nor asked about of a cancelled post of which something
// is, or may be: the post itself can no longer be withdrawn.
func (f *Facts) failUnsent() {
	for i := range f.Post.Spec.Targets {
		if t := posting.Target(f.Post, i); !attempt.Settled(t) && !attempt.IsOpen(t.Attempt) {
			fail(t, notSentAnyMore)
		}
	}
}

// notSentAnyMore is why the rest of such a post is not sent.
var notSentAnyMore = v1alpha1.Blocked{
	Reason: v1alpha1.ReasonCancelled, Problem: "not sent: the post was cancelled", Remedy: "create a new post to publish it",
}

// recordUncertain has a post of a cluster that was put back, or may have been, and that is deleted
// before that was looked up, leave a record which says that it may have gone out: who applies it
// again is asked then. What the bucket knows of it stays when the two are joined.
func (f *Facts) recordUncertain() []Action {
	post, by := f.Post, f.Rollback.UncertainSince
	if f.rollbackUnresolved() && f.Rollback.DetectedAt.After(by) {
		by = f.Rollback.DetectedAt
	}
	if f.Unowned || f.NamespaceTerminating || post.Spec.Draft || post.Status.Finished || !existedAt(post, by) || posting.Due(post).After(by) {
		return nil
	}
	return f.markUndecided(maybePublished)
}

// maybePublished is why a post is not sent that the cluster says was not sent.
var maybePublished = v1alpha1.Blocked{
	Reason: v1alpha1.ReasonOutcomeUnknown,
	Problem: "not sent: the cluster was, or may have been, put back to an earlier state, such as a snapshot of etcd, in which this post was not published yet, and " +
		"whether it was published since is unknown",
	Remedy: "look at the account, then answer as the condition " + v1alpha1.ConditionOutcomeUnknown + " says",
}

// resume lets a post go on whose delivery had begun and that has waited for its record.
func (f *Facts) resume() {
	accepted := meta.FindStatusCondition(f.Post.Status.Conditions, v1alpha1.ConditionAccepted)
	if posting.Started(f.Post) && accepted != nil && accepted.Reason == v1alpha1.ReasonRecordUnavailable {
		f.admit()
	}
}
