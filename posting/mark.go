// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import "github.com/herald-social/herald/api/v1alpha1"

// Mark derives the mark of target i.
func (v View) Mark(i int) v1alpha1.TargetMark {
	t := v.Target(i)
	switch {
	case t == nil:
		return v1alpha1.MarkNone
	case StateOf(t) == v1alpha1.TargetUndecided:
		return v1alpha1.MarkUndecided
	case !v.Settled(i) && v.unsettledPhase() == v1alpha1.PhaseProcessing && waitsForAccount(t):
		return v1alpha1.MarkWaiting
	default:
		return v1alpha1.MarkNone
	}
}

// waitsForAccount reports whether a target is waiting only for its account. An open attempt takes precedence, because
// its outcome must be determined first.
func waitsForAccount(t *v1alpha1.TargetStatus) bool {
	if t.Blocked == nil || t.Attempt != nil && t.Attempt.Outcome == "" {
		return false
	}
	return t.Blocked.Reason == v1alpha1.ReasonConnectionNotReady || t.Blocked.Reason == v1alpha1.ReasonAccountRestricted
}

// Retriable reports whether another post may retry target i: it is ProvenAbsent, and no post retries it.
func (v View) Retriable(i int) bool {
	return v.ProvenAbsent(i) && v.Target(i).RetriedBy == ""
}

// ProvenAbsent reports whether it is safe for another post to send target i again: it failed, the outcome of its last
// call is known and confirmed, and no card of a tree is published.
func (v View) ProvenAbsent(i int) bool {
	t := v.Target(i)
	if t == nil || StateOf(t) != v1alpha1.TargetFailed || t.ExternalID != "" || len(t.Cards) > 0 {
		return false
	}
	a := t.Attempt
	if a == nil {
		return true
	}
	if a.UnknownSince != nil || a.Refusal != nil && a.Refusal.Unconfirmed {
		return false
	}
	return a.Outcome == v1alpha1.OutcomeRefused || a.Outcome == v1alpha1.OutcomeNotSent || a.Outcome == v1alpha1.OutcomeAbsent
}
