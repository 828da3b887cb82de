// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Decide returns what comes next for a post. It decides from recorded facts, so
// that any process may take over at any moment.
func Decide(f *Facts) []Action {
	post := f.Post
	if len(f.Results) > 0 {
		return []Action{Record{}}
	}
	if value, ok := post.Annotations[v1alpha1.SettleAnnotation]; ok {
		return []Action{Resolve{value}}
	}
	switch {
	case !post.DeletionTimestamp.IsZero():
		return f.release()
	case posting.Started(post):
		return f.deliver()
	case post.Status.Finished:
		return nil
	case post.Spec.Cancelled:
		return []Action{Write{Event{Reason: v1alpha1.ReasonCancelled, Message: "cancelled before delivery began"}}}
	case f.mayHaveBeenSent():
		return f.failAll(restored)
	}
	if errs := f.Invalid(); len(errs) > 0 {
		return f.refuse(errs)
	}
	switch {
	case post.Spec.Draft:
		return []Action{f.accept(v1alpha1.ReasonDraft), Wait{}}
	case posting.Wait(post, f.Now) > 0:
		return f.schedule()
	}
	setAccepted(post, f.Now, v1alpha1.ReasonAccepted, acceptedMessage)
	return f.deliver()
}

const acceptedMessage = "the post passed every rule"

// mayHaveBeenSent reports whether the object is a copy from a backup of a post
// whose time had come before.
func (f *Facts) mayHaveBeenSent() bool {
	return posting.Restored(f.Post) && len(f.Post.Status.Targets) == 0 && !f.Post.Spec.Draft && posting.Wait(f.Post, f.Now) <= 0
}

// restored is why a copy from a backup is not sent.
var restored = v1alpha1.Blocked{
	Reason: v1alpha1.ReasonOutcomeUnknown,
	Problem: "not sent: this object is younger than the post, so it seems to be a copy restored from a backup (or the clocks of the apiserver and " +
		"of Kubernetes differ by more than a minute), and whether the original was published is unknown",
	Remedy: "look at the account, then answer as the condition " + v1alpha1.ConditionOutcomeUnknown + " says",
}

// release lets a post that is being deleted go once no call for it can be under
// way.
func (f *Facts) release() []Action {
	if lookups := f.dueLookups(); len(lookups) > 0 {
		return []Action{Lookup{lookups}}
	}
	for i := range f.Post.Status.Targets {
		if attempt.IsOpen(f.Post.Status.Targets[i].Attempt) {
			return []Action{f.wait(time.Time{}, false)}
		}
	}
	return []Action{Release{}}
}

// refusal is what a post waits for that is not accepted.
type refusal struct {
	// remedy is what a person does about it, and tooLate why the post fails if
	// that is not done in time.
	remedy, tooLate string
}

// refusals are the reasons for which a post that is not accepted goes on by
// itself.
var refusals = map[string]refusal{
	v1alpha1.ReasonConnectionNotFound: {"create the connection", "a connection that it names did not come into being in time"},
	v1alpha1.ReasonMediaNotFound:      {"create the media file", "a media file that it names did not come into being in time"},
	v1alpha1.ReasonMediaNotReady:      {"upload the media file", "a media file that it names was not uploaded in time"},
}

// mendable reports whether a post that is not accepted for this reason goes on by
// itself when what is missing comes.
func mendable(reason string) bool {
	_, ok := refusals[reason]
	return ok
}

// refusalReason is the reason why a post is not accepted: the gravest of its
// errors.
func (f *Facts) refusalReason(errs field.ErrorList) string {
	reason := v1alpha1.ReasonMediaNotReady
	for _, err := range errs {
		name, _ := err.BadValue.(string)
		switch {
		case err.Type != field.ErrorTypeNotFound:
			return v1alpha1.ReasonInvalid
		case strings.Contains(err.Field, "connectionRef"):
			reason = v1alpha1.ReasonConnectionNotFound
		case reason == v1alpha1.ReasonMediaNotReady && f.Media[name] == nil:
			reason = v1alpha1.ReasonMediaNotFound
		}
	}
	return reason
}

// refuse says why the post is not accepted. It stays mendable, and what comes into
// being later wakes it, within the starting deadline: an old post does not go out
// because of a new connection.
func (f *Facts) refuse(errs field.ErrorList) []Action {
	reason := f.refusalReason(errs)
	message := errs.ToAggregate().Error()
	var until time.Time
	if r, ok := refusals[reason]; ok {
		message += "; " + r.remedy + " and the post goes on by itself, or correct its name"
		if until = f.patientUntil(); !until.After(f.Now) {
			return f.failAll(v1alpha1.Blocked{Reason: reason, Problem: "not published: " + r.tooLate})
		}
	}
	setAccepted(f.Post, f.Now, reason, message)
	return []Action{Write{Event{Warning: true, Reason: reason, Message: message}}, Wait{Until: until, ForInputs: true}}
}

// patientUntil is until when the post waits for what does not exist: for the
// starting deadline, counted from when it was due or, if that was later, found
// wanting. A draft has time.
func (f *Facts) patientUntil() time.Time {
	if f.Post.Spec.Draft {
		return f.Now.Add(f.Settings.StartingDeadline)
	}
	since := f.Now
	if c := meta.FindStatusCondition(f.Post.Status.Conditions, v1alpha1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		since = c.LastTransitionTime.Time
	}
	if due := posting.Due(f.Post); due.After(since) {
		since = due
	}
	return since.Add(f.Settings.StartingDeadline)
}

// accept enters that the post passed every rule, and waits for its time or for a
// person.
func (f *Facts) accept(reason string) Write {
	status := &f.Post.Status
	news := status.ObservedGeneration != f.Post.Generation || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAccepted)
	setAccepted(f.Post, f.Now, v1alpha1.ReasonAccepted, acceptedMessage)
	f.enterTargets()
	if !news {
		return Write{}
	}
	return Write{Event{Reason: reason}}
}

// longestWait bounds one wait for a scheduled time: a timer does not run while
// the machine is suspended, and does not see its clock being set.
const longestWait = 5 * time.Minute

// schedule accepts a post whose time lies ahead, and prepares it as far as that
// can be done ahead of it.
func (f *Facts) schedule() []Action {
	write := f.accept(v1alpha1.ReasonScheduled)
	ahead := f.prepareAhead()
	due := f.Post.Spec.ScheduledAt.Time
	wait := Wait{Until: due, ForInputs: ahead.forInputs}
	switch left := due.Sub(f.Now); {
	case !ahead.next.IsZero() && ahead.next.Sub(f.Now) < min(left, longestWait):
		wait.Until = ahead.next
	case left > longestWait:
		wait.Until = f.Now.Add(longestWait - f.spread(longestWait/2))
	default:
		wait.InTurn = true
	}
	return append(ahead.actions, write, wait)
}

// failAll fails every target that is not settled.
func (f *Facts) failAll(why v1alpha1.Blocked) []Action {
	f.enterTargets()
	for i := range f.Post.Status.Targets {
		t := &f.Post.Status.Targets[i]
		if !attempt.Settled(t) {
			fail(t, why)
		}
	}
	return []Action{Write{Event{Warning: true, Reason: why.Reason, Message: inWords(&why)}}}
}

// enterTargets gives every target its entry in the status.
func (f *Facts) enterTargets() {
	post := f.Post
	for i := range post.Spec.Targets {
		t := posting.Target(post, i)
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
			// What was entered speaks of the spec before an edit.
			attempt.Reset(t)
		}
	}
}

// fail fails a target that has no open attempt.
func fail(t *v1alpha1.TargetStatus, why v1alpha1.Blocked) {
	if err := attempt.Fail(t, why); err != nil {
		panic(fmt.Sprintf("target %d cannot fail: %v", t.Index, err))
	}
}
