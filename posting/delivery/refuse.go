// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting/attempt"
)

// remedies maps a blocking reason to its remedy. After the remedy, the post proceeds without any other change.
var remedies = map[string]string{
	v1alpha1.ReasonConnectionNotFound: "create the connection, or correct its name",
	v1alpha1.ReasonMediaNotFound:      "create the media file, or correct its name",
	v1alpha1.ReasonMediaNotReady:      "upload the media file",
	v1alpha1.ReasonRecordUnavailable:  "check that the store of media files responds",
	v1alpha1.ReasonNoTeam:             "use the namespace of a Team, or have an administrator create a Team that owns this one",
}

func noTeam(post *v1alpha1.Post) v1alpha1.Blocked {
	return v1alpha1.Blocked{
		Reason: v1alpha1.ReasonNoTeam, Problem: conditions.NoTeamProblem(post.Namespace), Remedy: conditions.NoTeamRemedy(post.Namespace),
	}
}

// isRecoverable reports whether a post rejected for this reason proceeds without an edit once the object exists.
func isRecoverable(reason string) bool { return remedies[reason] != "" }

func isRefusal(reason string) bool { return isRecoverable(reason) || reason == v1alpha1.ReasonInvalid }

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

// refuse rejects the post because of its errors. Drafts and scheduled posts keep their state. A due post waits for a
// fix until the starting deadline; after that, a new connection must not publish an old post.
func (f *Facts) refuse(errs field.ErrorList) []Action {
	return f.blockAllFor(f.refusalReason(errs), errs.ToAggregate().Error(), func(target int) v1alpha1.Blocked { return f.refusal(errs, target) })
}

func (f *Facts) blockAllFor(reason, message string, blocked func(target int) v1alpha1.Blocked) []Action {
	return f.blockAll(block{reason: reason, message: message, blocked: blocked})
}

type block struct {
	reason, message string
	blocked         func(target int) v1alpha1.Blocked
	// least is the earliest possible deadline of any target.
	least time.Time
	// end is the block of a target whose deadline has passed. If it is nil, the target fails with what blocked it.
	end *v1alpha1.Blocked
}

func (f *Facts) blockAll(w block) []Action {
	f.ensureTargets()
	scheduled := !f.Post.Spec.Draft && f.UntilDue(f.Now) > 0
	for i := range f.Post.Spec.Targets {
		t := f.Target(i)
		if attempt.Settled(t) {
			continue
		}
		attempt.Block(t, w.blocked(i))
		if scheduled || f.Post.Spec.Draft {
			continue
		}
		f.setTryUntil(t)
		switch {
		case !f.expired(t) || !f.Now.After(w.least):
		case w.end != nil:
			fail(t, *w.end)
		default:
			f.expire(i, t)
		}
	}
	reason, message := w.reason, w.message
	if f.AllSettled() {
		setAccepted(f.Post, f.Now, reason, message)
		return []Action{Write{}} // each target has its own event
	}
	if isRecoverable(reason) {
		message += "; " + remedies[reason] + ", and the post proceeds"
	}
	setAccepted(f.Post, f.Now, reason, message)
	wait := f.wait(time.Time{}, true)
	switch {
	case scheduled:
		wait = f.waitForTime()
		wait.ForInputs = true
	case !wait.Until.IsZero() && !wait.Until.After(f.Now) && !w.least.Before(f.Now):
		wait.Until = w.least.Add(time.Millisecond)
	}
	return []Action{Write{Event{Warning: true, Reason: reason, Message: message}}, wait}
}

func (f *Facts) refusal(errs field.ErrorList, target int) v1alpha1.Blocked {
	var own field.ErrorList
	path := field.NewPath("spec", "targets").Index(target).String()
	for _, err := range errs {
		if strings.HasPrefix(err.Field, path) {
			own = append(own, err)
		}
	}
	if len(own) == 0 {
		own = errs
	}
	reason := f.refusalReason(own)
	b := v1alpha1.Blocked{Reason: reason, Problem: own.ToAggregate().Error(), Remedy: remedies[reason]}
	if b.Remedy == "" {
		b.Remedy = "correct the post"
	}
	return b
}
