// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import "github.com/herald-social/herald/api/v1alpha1"

// Mark is what the phase of a target does not show. Lists keep it for each target of each
// post, so it takes a byte.
type Mark uint8

// The marks.
const (
	// MarkNone: the phase shows everything.
	MarkNone Mark = iota
	// MarkWaiting: the target is due and waits for its account, which a person has to
	// connect or enable, or which its platform restricts.
	MarkWaiting
	// MarkUndecided: only a person can tell whether the target is published.
	MarkUndecided
)

// MarkOf derives the mark of target i.
func MarkOf(post *v1alpha1.Post, i int) Mark {
	t := Target(post, i)
	switch {
	case t == nil:
		return MarkNone
	case StateOf(t) == v1alpha1.TargetUndecided:
		return MarkUndecided
	case !Settled(post, i) && unsettledPhase(post) == v1alpha1.PhaseProcessing && waitsForAccount(t):
		return MarkWaiting
	default:
		return MarkNone
	}
}

// waitsForAccount reports whether the account alone keeps a target from being sent. While
// a call is open, its outcome is what the target waits for.
func waitsForAccount(t *v1alpha1.TargetStatus) bool {
	if t.Blocked == nil || t.Attempt != nil && t.Attempt.Outcome == "" {
		return false
	}
	return t.Blocked.Reason == v1alpha1.ReasonConnectionNotReady || t.Blocked.Reason == v1alpha1.ReasonAccountRestricted
}

// ProvenAbsent reports whether target i can be sent again by another post: it failed, the
// outcome of its last call is known, and no part of a tree is out.
func ProvenAbsent(post *v1alpha1.Post, i int) bool {
	t := Target(post, i)
	if t == nil || StateOf(t) != v1alpha1.TargetFailed || t.ExternalID != "" || len(t.Cards) > 0 {
		return false
	}
	a := t.Attempt
	return a == nil || a.UnknownSince == nil && (a.Outcome == v1alpha1.OutcomeRefused || a.Outcome == v1alpha1.OutcomeNotSent || a.Outcome == v1alpha1.OutcomeAbsent)
}
