// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Settled reports whether a target is posted or has failed.
func Settled(t *v1alpha1.TargetStatus) bool {
	return t != nil && (t.Phase == v1alpha1.PhasePosted || t.Phase == v1alpha1.PhaseFailed)
}

// Posted reports whether a target is published whole.
func Posted(t *v1alpha1.TargetStatus) bool { return t != nil && t.Phase == v1alpha1.PhasePosted }

// Undecided reports whether only a person can tell whether a target is published.
func Undecided(t *v1alpha1.TargetStatus) bool {
	return t.Phase == v1alpha1.PhaseFailed && t.Reason == v1alpha1.ReasonOutcomeUnknown
}

// Block enters what keeps a target from being published, and reports whether that
// is news.
func Block(t *v1alpha1.TargetStatus, reason, problem string) (news bool) {
	problem = clip(problem)
	news = t.Reason != reason || t.Message != problem
	t.Phase, t.Reason, t.Message, t.NextTryAt = v1alpha1.PhaseProcessing, reason, problem, nil
	return news
}

// Blocked reports whether something is entered that keeps a target from being
// published.
func Blocked(t *v1alpha1.TargetStatus) bool {
	return t.Reason != "" && t.Reason != v1alpha1.ReasonProcessing
}

// BlockedBy reports whether this is what keeps a target from being published.
func BlockedBy(t *v1alpha1.TargetStatus, reason string) bool { return t.Reason == reason }

// waiting are the reasons that say what a target waits for.
var waiting = map[string]bool{
	v1alpha1.ReasonRateLimited: true, v1alpha1.ReasonPlatformBusy: true, v1alpha1.ReasonConnectionNotReady: true,
	v1alpha1.ReasonMediaNotReady: true, v1alpha1.ReasonPreparing: true, v1alpha1.ReasonUsageUnavailable: true,
}

// Hindrance is what a target has waited for, and the problem in words; empty if it
// has waited for nothing but its turn.
func Hindrance(t *v1alpha1.TargetStatus) (reason, problem string) {
	if !waiting[t.Reason] || SendsAgain(t) {
		return "", ""
	}
	problem, _, _ = strings.Cut(t.Message, "; Herald tries again")
	return t.Reason, problem
}

// Reset forgets what is entered of a target without an attempt, which speaks of the
// spec before an edit. That only a person can tell its outcome is not forgotten.
func Reset(t *v1alpha1.TargetStatus) {
	if !Undecided(t) {
		t.Phase, t.Reason, t.Message, t.TryUntil, t.NextTryAt = v1alpha1.PhaseProcessing, "", "", nil, nil
	}
}

// Withdraw enters that a target was cancelled before delivery began.
func Withdraw(t *v1alpha1.TargetStatus) {
	if t.Phase != v1alpha1.PhaseFailed {
		t.Phase, t.Reason, t.Message = v1alpha1.PhaseCancelled, v1alpha1.ReasonCancelled, ""
	}
}
