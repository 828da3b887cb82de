// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// AmbiguousSince returns when the oldest attempt with an unknown outcome was
// claimed, or nil. Attempts on cards before the next one, and those that a
// person has answered for, are not among them.
func AmbiguousSince(t *v1alpha1.TargetStatus) *v1alpha1.Time {
	a := t.Attempt
	switch {
	case a == nil || a.Outcome == v1alpha1.OutcomePosted:
		return nil
	case a.UnknownSince != nil:
		return a.UnknownSince
	case a.Outcome == v1alpha1.OutcomeUnknown:
		return v1alpha1.NewTimePtr(a.StartedAt.Time)
	}
	return nil
}

// WillResend reports whether a target waits for nothing but the pause before
// its call is made again, although the latest one may have published.
func WillResend(t *v1alpha1.TargetStatus) bool {
	return posting.StateOf(t) == v1alpha1.TargetPending && t.Blocked == nil && t.Attempt != nil && t.Attempt.Outcome == v1alpha1.OutcomeUnknown
}

// closeUnknown closes an attempt whose outcome the platform cannot tell; why says
// what was found.
func closeUnknown(t *v1alpha1.TargetStatus, policy v1alpha1.UnknownOutcomePolicy, now time.Time, why string) {
	t.Attempt.Outcome, t.Attempt.Refusal = v1alpha1.OutcomeUnknown, nil
	at := now.Add(backoff(tries(t)))
	// What the platform is known to have taken may be published at any time.
	if policy == v1alpha1.OnUnknownRetry && t.Attempt.OperationID == "" && inTime(t, at) {
		t.Blocked, t.NextTryAt = nil, v1alpha1.NewTimePtr(at)
		return
	}
	markUndecided(t, why)
}

// Abandon closes an open attempt of which nobody can be asked any more. The post of the
// target goes, so that nothing is sent for it again.
func Abandon(t *v1alpha1.TargetStatus, now time.Time) error {
	if !IsOpen(t.Attempt) {
		return ErrSettled
	}
	why := "it cannot be found out any more: the post, or the connection by which the platform is asked, was deleted"
	closeUnknown(t, v1alpha1.OnUnknownFail, now, why)
	return nil
}

// fail settles a target that is not published, as far as the latest attempt
// tells. If an earlier one may have published, only a person can say so.
func fail(t *v1alpha1.TargetStatus, b v1alpha1.Blocked) {
	if AmbiguousSince(t) != nil {
		markUndecided(t, "a call got no clear answer, and nothing that followed published it: "+b.Problem)
		return
	}
	state := v1alpha1.TargetFailed
	if b.Reason == v1alpha1.ReasonOutcomeUnknown {
		state = v1alpha1.TargetUndecided
	}
	settle(t, state, b)
}

// markUndecided leaves it to a person to tell whether a target is published.
func markUndecided(t *v1alpha1.TargetStatus, why string) {
	settle(t, v1alpha1.TargetUndecided, v1alpha1.Blocked{Reason: v1alpha1.ReasonOutcomeUnknown, Problem: why})
}

func settle(t *v1alpha1.TargetStatus, state v1alpha1.TargetState, b v1alpha1.Blocked) {
	t.State, t.NextTryAt, t.TryUntil = state, nil, nil
	setBlocked(t, b)
}
