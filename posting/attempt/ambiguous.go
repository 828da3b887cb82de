// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// AmbiguousSince returns the claim time of the oldest attempt with an unknown outcome, or nil. Attempts on earlier
// cards and attempts resolved by a user are ignored.
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

// WillResend reports whether a target is just waiting out its backoff although the latest call may have published it.
func WillResend(t *v1alpha1.TargetStatus) bool {
	return posting.StateOf(t) == v1alpha1.TargetPending && t.Blocked == nil && t.Attempt != nil && t.Attempt.Outcome == v1alpha1.OutcomeUnknown
}

func closeUnknown(t *v1alpha1.TargetStatus, policy v1alpha1.UnknownOutcomePolicy, now time.Time, why string) {
	t.Attempt.Outcome, t.Attempt.Refusal = v1alpha1.OutcomeUnknown, nil
	at := now.Add(backoff(tries(t)))
	// The platform may still publish a post that it has accepted, at any time.
	if policy == v1alpha1.OnUnknownRetry && t.Attempt.OperationID == "" && inTime(t, at) {
		t.Blocked, t.NextTryAt = nil, v1alpha1.NewTimePtr(at)
		return
	}
	markUndecided(t, why)
}

// Abandon closes an open attempt that can no longer be looked up, because its post is being deleted. The target is not
// sent again.
func Abandon(t *v1alpha1.TargetStatus, now time.Time) error {
	if !IsOpen(t.Attempt) {
		return ErrSettled
	}
	why := "it can no longer be looked up: the post or its connection was deleted"
	closeUnknown(t, v1alpha1.OnUnknownFail, now, why)
	return nil
}

// fail settles an unpublished target. If an earlier attempt may have published it, the target becomes undecided.
func fail(t *v1alpha1.TargetStatus, b v1alpha1.Blocked) {
	if AmbiguousSince(t) != nil {
		markUndecided(t, "the outcome of a call is unknown, and no later call published it: "+b.Problem)
		return
	}
	state := v1alpha1.TargetFailed
	if b.Reason == v1alpha1.ReasonOutcomeUnknown {
		state = v1alpha1.TargetUndecided
	}
	settle(t, state, b)
}

func markUndecided(t *v1alpha1.TargetStatus, why string) {
	settle(t, v1alpha1.TargetUndecided, v1alpha1.Blocked{Reason: v1alpha1.ReasonOutcomeUnknown, Problem: why})
}

func settle(t *v1alpha1.TargetStatus, state v1alpha1.TargetState, b v1alpha1.Blocked) {
	t.State, t.NextTryAt, t.TryUntil = state, nil, nil
	setBlocked(t, b)
}
