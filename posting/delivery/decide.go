// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/record"
)

// Decide returns the next actions for a post. It reads only recorded facts, so any process may take over at any moment.
func Decide(f *Facts) []Action {
	post := f.Post
	if len(f.Results) > 0 {
		return []Action{Record{}}
	}
	if actions := f.checkRollback(); actions != nil {
		return actions
	}
	if value, ok := post.Annotations[v1alpha1.SettleAnnotation]; ok {
		return []Action{Resolve{value}}
	}
	if !post.DeletionTimestamp.IsZero() {
		return f.release()
	}
	if actions := f.deferForTeam(); actions != nil {
		return actions
	}
	if actions := f.resolveEarlier(); actions != nil {
		return actions
	}
	switch {
	case f.inDelivery():
		return f.deliver()
	case post.Status.Finished:
		return nil
	case f.Cancelled() && len(undecided(post)) > 0:
		f.ensureTargets()
		f.failUnsent()
		return []Action{Write{}}
	case f.Cancelled():
		return []Action{cancel()}
	case f.Unowned:
		return f.waitForTeam()
	case f.mayHaveBeenSent():
		return f.failAll(restored)
	}
	if errs := f.Invalid(); len(errs) > 0 {
		return f.refuse(errs)
	}
	switch {
	case post.Spec.Draft:
		f.admit()
		return []Action{Write{}, Wait{}}
	case f.UntilDue(f.Now) > 0:
		return f.schedule()
	}
	f.admit()
	return f.deliver()
}

// inDelivery reports whether a claim determines what happens next. A cancelled post whose calls were certainly not sent
// needs no further delivery.
func (f *Facts) inDelivery() bool {
	if f.Cancelled() {
		return !f.Unsent()
	}
	return f.Started() && !f.onlyAdopted()
}

func cancel() Write {
	return Write{Event{Reason: v1alpha1.ReasonCancelled, Message: "cancelled before delivery began"}}
}

const acceptedMessage = "the post passed every rule"

// mayHaveBeenSent reports whether the object is a backup copy of a post that was already due. Edits do not matter: no
// target is sent until a user has resolved the undecided ones.
func (f *Facts) mayHaveBeenSent() bool {
	entries := f.Post.Status.Targets
	isKnown := len(entries) > 0 && len(undecided(f.Post)) == 0 && !slices.ContainsFunc(entries, func(t v1alpha1.TargetStatus) bool {
		return attempt.BlockedBy(&t, v1alpha1.ReasonRecordUnavailable) // recorded while the archive was unavailable
	})
	return f.dueCopy() && !hasEarlierRecord(f.Post) && !isKnown
}

func (f *Facts) dueCopy() bool {
	return record.IsCopy(f.Post) && !f.Post.Spec.Draft && f.UntilDue(f.Now) <= 0
}

// restored blocks a backup copy.
var restored = v1alpha1.Blocked{
	Reason: v1alpha1.ReasonOutcomeUnknown,
	Problem: "not sent: this object is younger than the post, so it seems to be a copy restored from a backup (or the clocks of the apiserver and " +
		"of Kubernetes differ by more than a minute), and it is unknown whether the original was published",
	Remedy: "check the account, then answer as described in the " + v1alpha1.ConditionOutcomeUnknown + " condition",
}

// release allows a post to be deleted once no call for it can be running and the last call's outcome is known or can no
// longer be determined. If its connection is deleted in the meantime, the post is requeued, because lookups are no
// longer possible. In a terminating namespace, release makes a last lookup without waiting until it is due.
func (f *Facts) release() []Action {
	if actions := f.reclaimArmed(); actions != nil {
		return actions
	}
	lookups := f.dueLookups()
	if f.NamespaceTerminating {
		lookups = f.finishedCalls()
	}
	if len(lookups) > 0 {
		return []Action{Lookup{lookups}}
	}
	for i := range f.Post.Status.Targets {
		if attempt.IsOpen(f.Post.Status.Targets[i].Attempt) {
			return []Action{f.wait(time.Time{}, true)}
		}
	}
	if actions := f.recordUncertain(); actions != nil {
		return actions
	}
	return []Action{Release{}}
}

func (f *Facts) admit() {
	setAccepted(f.Post, f.Now, v1alpha1.ReasonAccepted, acceptedMessage)
	f.ensureTargets()
	for i := range f.Post.Status.Targets {
		if t := &f.Post.Status.Targets[i]; t.Blocked != nil && isRefusal(t.Blocked.Reason) && !attempt.Settled(t) {
			t.Blocked = nil
		}
	}
}

// lastLook is how far in advance every post is reconciled again, to report problems while they can be fixed. Posts due
// in the same second are delivered in order of arrival (package dispatch), which is remembered only for minutes.
const lastLook = 5 * time.Minute

func (f *Facts) schedule() []Action {
	f.admit()
	if targets := f.armable(); len(targets) > 0 {
		return []Action{Arm{targets}, f.waitForTime()}
	}
	ahead := f.prepareAhead()
	wait := f.waitForTime()
	wait.ForInputs = ahead.forInputs
	if !ahead.next.IsZero() && ahead.next.Before(wait.Until) {
		wait.Until, wait.InTurn = ahead.next, false
	}
	return append(append(ahead.reports, ahead.actions(f, true)...), Write{}, wait)
}

// waitForTime requeues the post for the last look, and after that for its scheduled time. The delay may be arbitrarily
// long, because the owner of the timers requeues posts after a clock jump (apiclock.Leaps).
func (f *Facts) waitForTime() Wait {
	at := f.Post.Spec.ScheduledAt.Time
	if last := at.Add(f.spread(lastLook/2) - lastLook); last.After(f.Now) {
		return Wait{Until: last}
	}
	return Wait{Until: at, InTurn: true}
}

// failAll fails all targets of a post that has not been claimed. Each target has its own event.
func (f *Facts) failAll(why v1alpha1.Blocked) []Action {
	f.ensureTargets()
	for i := range f.Post.Status.Targets {
		fail(&f.Post.Status.Targets[i], why)
	}
	return []Action{Write{}}
}

func (f *Facts) ensureTargets() {
	post := f.Post
	for i := range post.Spec.Targets {
		t := f.Target(i)
		if t == nil {
			post.Status.Targets = append(post.Status.Targets, v1alpha1.TargetStatus{Index: int32(i)})
			t = &post.Status.Targets[len(post.Status.Targets)-1]
		}
		if t.Attempt != nil {
			continue
		}
		if conn := f.connection(i); conn != nil {
			t.Platform = conn.Spec.Platform
		}
		if post.Status.ObservedGeneration != post.Generation {
			// The entry is about the spec before an edit.
			attempt.Reset(t)
		}
	}
}

func fail(t *v1alpha1.TargetStatus, why v1alpha1.Blocked) {
	if err := attempt.Fail(t, why); err != nil {
		panic(fmt.Sprintf("target %d cannot fail: %v", t.Index, err))
	}
}
