// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// Posted reports whether a target is published whole.
func Posted(t *v1alpha1.TargetStatus) bool {
	return t != nil && posting.StateOf(t) == v1alpha1.TargetPosted
}

// Undecided reports whether only a person can tell whether a target is
// published.
func Undecided(t *v1alpha1.TargetStatus) bool {
	return t != nil && posting.StateOf(t) == v1alpha1.TargetUndecided
}

// Settled reports whether a target is posted or has failed. An undecided target
// has failed, until a person says what became of it.
func Settled(t *v1alpha1.TargetStatus) bool {
	return t != nil && (posting.StateOf(t) == v1alpha1.TargetFailed || Posted(t) || Undecided(t))
}

// Block records what a pending target waits for, without a time at which it is
// tried again. It reports whether that is news.
func Block(t *v1alpha1.TargetStatus, b v1alpha1.Blocked) (news bool) {
	before := t.Blocked
	t.State, t.NextTryAt = v1alpha1.TargetPending, nil
	setBlocked(t, b)
	return before == nil || *before != *t.Blocked
}

// BlockedBy reports whether this is the reason for which a target waits, or
// failed.
func BlockedBy(t *v1alpha1.TargetStatus, reason string) bool {
	return t.Blocked != nil && t.Blocked.Reason == reason
}

// Reset forgets what a target without an attempt waits for, which speaks of the
// spec before an edit. What is settled stays: people were told that a failed target
// is not published, and may have published it in another way.
func Reset(t *v1alpha1.TargetStatus) {
	if !Settled(t) {
		t.State, t.Blocked, t.TryUntil, t.NextTryAt = v1alpha1.TargetPending, nil, nil, nil
	}
}

// Bounds of the schema, in characters.
const (
	maxProblem = 1024
	maxRemedy  = 512
)

// setBlocked records what is in the way of a target, cut to what the schema
// takes: a status that it refused could not record the outcome.
func setBlocked(t *v1alpha1.TargetStatus, b v1alpha1.Blocked) {
	b.Problem, b.Remedy = text.Truncate(b.Problem, maxProblem), text.Truncate(b.Remedy, maxRemedy)
	t.Blocked = &b
}

func blockedBy(reason string, err *platforms.Error) v1alpha1.Blocked {
	return v1alpha1.Blocked{Reason: reason, Problem: err.Problem, Remedy: err.Remedy}
}
