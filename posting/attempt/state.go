// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// Posted reports whether a target is completely published.
func Posted(t *v1alpha1.TargetStatus) bool {
	return t != nil && posting.StateOf(t) == v1alpha1.TargetPosted
}

// Undecided reports whether only a user can determine a target's outcome.
func Undecided(t *v1alpha1.TargetStatus) bool {
	return t != nil && posting.StateOf(t) == v1alpha1.TargetUndecided
}

// Settled reports whether a target is posted or has failed. An undecided target counts as failed until a user resolves
// it.
func Settled(t *v1alpha1.TargetStatus) bool {
	return t != nil && (posting.StateOf(t) == v1alpha1.TargetFailed || Posted(t) || Undecided(t))
}

// Block records why a pending target is waiting, without a retry time. It reports whether the reason is a new one.
func Block(t *v1alpha1.TargetStatus, b v1alpha1.Blocked) (news bool) {
	before := t.Blocked
	t.State, t.NextTryAt = v1alpha1.TargetPending, nil
	setBlocked(t, b)
	return before == nil || *before != *t.Blocked
}

// BlockedBy reports whether a target is waiting or has failed for this reason.
func BlockedBy(t *v1alpha1.TargetStatus, reason string) bool {
	return t.Blocked != nil && t.Blocked.Reason == reason
}

// Reset clears the blocking reason of a target that has no attempt, because the reason is about the spec before an
// edit. A settled target is not reset: its failure was reported, and the user may have published it elsewhere.
func Reset(t *v1alpha1.TargetStatus) {
	if !Settled(t) {
		t.State, t.Blocked, t.TryUntil, t.NextTryAt = v1alpha1.TargetPending, nil, nil, nil
	}
}

// The schema's maximum lengths, in characters.
const (
	maxProblem = 1024
	maxRemedy  = 512
)

// setBlocked records why a target is blocked, truncated to the schema's limits. Otherwise the API server would reject
// the status, and the outcome would be lost.
func setBlocked(t *v1alpha1.TargetStatus, b v1alpha1.Blocked) {
	b.Problem, b.Remedy = text.Truncate(b.Problem, maxProblem), text.Truncate(b.Remedy, maxRemedy)
	t.Blocked = &b
}

func blockedBy(reason string, err *platforms.Error) v1alpha1.Blocked {
	return v1alpha1.Blocked{Reason: reason, Problem: err.Problem, Remedy: err.Remedy}
}
