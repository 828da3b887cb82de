// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// requiredLookups is how many authoritative lookups must miss a post before it
// counts as absent.
const requiredLookups = 2

// workFor is how long a platform may work on what it has taken. TikTok takes
// minutes, gives up after an hour what it cannot fetch, and moderates for hours
// at times.
const workFor = 24 * time.Hour

// answerLost is the problem of a call that nothing more is known of.
var answerLost = platforms.Errorf(platforms.ClassUnknown, "the answer was lost")

// NextLookup is when an open attempt is to be looked up. Before that it must
// not be: another process may be in the middle of the call.
func NextLookup(t *v1alpha1.TargetStatus, timing Timing) time.Time {
	quiet := callFinishedAt(t.Attempt, timing)
	if t.Attempt.Refusal != nil {
		quiet = confirmFrom(t.Attempt, timing)
	}
	if t.NextTryAt != nil && t.NextTryAt.After(quiet) {
		return t.NextTryAt.Time
	}
	return quiet
}

// RecordLookup enters what a lookup found into the entry of an open attempt.
// policy decides what happens to an outcome that the platform cannot tell;
// cards is as in Record; now is when the platform was asked.
func RecordLookup(t *v1alpha1.TargetStatus, f platforms.LookupResult, timing Timing, policy v1alpha1.UnknownOutcomePolicy, cards int, now time.Time) error {
	if !IsOpen(t.Attempt) {
		return ErrSettled
	}
	authoritativeFrom := proofFrom(t.Attempt, timing)
	switch {
	case f.Matches == 1:
		recordPosted(t, f, cards, now)
		return nil
	case f.Matches > 1:
		closeUnknown(t, v1alpha1.OnUnknownFail, now, fmt.Sprintf("%d posts of the account fit, so it cannot be told which is this one", f.Matches))
		return nil
	case storable(f.OperationID):
		recordProcessing(t, f.OperationID, now)
		return nil
	case f.OperationID != "":
		return RecordLookupFailure(t, platforms.Errorf(platforms.ClassUnknown, "the platform works on it under an id that cannot be stored"), timing, policy, now)
	case t.Attempt.Refusal != nil:
		recordConfirmation(t, f, timing, now)
		return nil
	case f.Refused != nil:
		t.Attempt.Outcome = v1alpha1.OutcomeRefused
		applyRefusal(t, f.Refused, backoff(tries(t)), now)
		return nil //nolint:nilerr // the refusal is what was found
	case now.Before(authoritativeFrom):
		scheduleLookup(t, callFinishedAt(t.Attempt, timing), time.Time{}, now)
		if t.NextTryAt.After(authoritativeFrom) {
			t.NextTryAt = v1alpha1.NewTimePtr(authoritativeFrom)
		}
		return nil
	}
	t.Attempt.Lookups++
	if t.Attempt.Lookups < requiredLookups {
		t.NextTryAt = v1alpha1.NewTimePtr(now.Add(max(timing.Lag/2, firstRetry)))
		return nil
	}
	if timing.Authoritative && !f.Proof {
		// The listing was searched from the first ambiguous call on, so that it
		// shows none of them.
		t.Attempt.UnknownSince = nil
	}
	closeMissing(t, timing.Authoritative || f.Proof, policy, now)
	return nil
}

// recordProcessing enters that the platform still works on what it took, under an id that its
// answer did not tell: that was lost, or a refusal, which did not hold. From then on it
// is asked for as long as after that answer.
func recordProcessing(t *v1alpha1.TargetStatus, operationID string, now time.Time) {
	a := t.Attempt
	if a.EndedAt == nil {
		a.EndedAt = v1alpha1.NewTimePtr(now)
	}
	a.OperationID, a.Lookups, a.Refusal, t.Blocked = cmp.Or(a.OperationID, operationID), 0, nil, nil
	t.NextTryAt = v1alpha1.NewTimePtr(now.Add(firstRetry))
}

// closeMissing closes an attempt that no lookup found; proven says that this proves
// its absence.
func closeMissing(t *v1alpha1.TargetStatus, proven bool, policy v1alpha1.UnknownOutcomePolicy, now time.Time) {
	switch {
	case !proven:
		closeUnknown(t, policy, now, "the account's listing does not show it, which is no proof on this platform")
	case t.Attempt.Duplicate:
		t.Attempt.Outcome = v1alpha1.OutcomeRefused
		fail(t, v1alpha1.Blocked{
			Reason:  v1alpha1.ReasonRefused,
			Problem: "the platform refused the post because the account has published the same content before",
			Remedy:  "change the text and post again",
		})
	default:
		t.Attempt.Outcome = v1alpha1.OutcomeAbsent
		scheduleRetry(t, v1alpha1.ReasonPlatformBusy, platforms.Errorf(platforms.ClassTransient,
			"the platform did not publish the post although it was sent"), backoff(tries(t)), now)
	}
}

// RecordLookupFailure enters that a lookup got no usable answer.
func RecordLookupFailure(t *v1alpha1.TargetStatus, err *platforms.Error, timing Timing, policy v1alpha1.UnknownOutcomePolicy, now time.Time) error {
	if !IsOpen(t.Attempt) {
		return ErrSettled
	}
	if t.Attempt.Refusal != nil {
		recordConfirmationFailure(t, err, timing, now)
		return nil
	}
	since := now.Sub(callFinishedAt(t.Attempt, timing))
	taken := t.Attempt.OperationID != ""
	switch {
	case taken && since > max(workFor, timing.LookupTimeout):
		closeUnknown(t, policy, now, "the platform took it and did not say in time what became of it: "+err.Problem)
		return nil
	case !taken && since > timing.LookupTimeout:
		closeUnknown(t, policy, now, "the platform could not be asked: "+err.Error())
		return nil
	}
	scheduleLookup(t, callFinishedAt(t.Attempt, timing), err.RetryAt, now)
	b := blockedBy(v1alpha1.ReasonProcessing, err)
	if !taken {
		b.Reason, b.Problem = v1alpha1.ReasonSettling, "the answer was lost, and the platform cannot be asked yet: "+err.Problem
	}
	setBlocked(t, b)
	return nil
}

// scheduleLookup plans another lookup, the later the longer the platform has been asked, and
// not before it can be asked again.
func scheduleLookup(t *v1alpha1.TargetStatus, since, notBefore, now time.Time) {
	next := now.Add(min(max(now.Sub(since), firstRetry), maxRetry))
	if notBefore.After(next) {
		next = notBefore
	}
	t.NextTryAt = v1alpha1.NewTimePtr(next)
	if t.Attempt.OperationID == "" && t.Blocked == nil {
		setBlocked(t, blockedBy(v1alpha1.ReasonSettling, answerLost))
	}
}
