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

// requiredLookups is the number of authoritative lookups that must find nothing to prove absence.
const requiredLookups = 2

// workFor is the maximum time for which a platform may process an accepted post. TikTok takes minutes, stops fetching
// files after an hour, and sometimes moderates for hours.
const workFor = 24 * time.Hour

var answerLost = platforms.Errorf(platforms.ClassUnknown, "the response was lost")

// NextLookup returns the time of an open attempt's next lookup. An earlier lookup would be unsafe, because another
// process may still be making the call.
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

// RecordLookup records the result of a lookup in the entry of an open attempt. policy applies if the platform cannot
// determine the outcome, cards has the same meaning as in Record, and now is the time of the lookup.
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
		closeUnknown(t, v1alpha1.OnUnknownFail, now, fmt.Sprintf("%d posts of the account match, so it is unknown which one this is", f.Matches))
		return nil
	case storable(f.OperationID):
		recordProcessing(t, f.OperationID, now)
		return nil
	case f.OperationID != "":
		return RecordLookupFailure(t, platforms.Errorf(platforms.ClassUnknown, "the platform is processing it under an id that cannot be stored"), timing, policy, now)
	case t.Attempt.Refusal != nil:
		recordConfirmation(t, f, timing, now)
		return nil
	case f.Refused != nil:
		t.Attempt.Outcome = v1alpha1.OutcomeRefused
		applyRefusal(t, f.Refused, backoff(tries(t)), now)
		return nil //nolint:nilerr // the refusal is the result
	case now.Before(authoritativeFrom):
		scheduleLookup(t, callFinishedAt(t.Attempt, timing), time.Time{}, now)
		if t.NextTryAt.After(authoritativeFrom) {
			t.NextTryAt = v1alpha1.NewTimePtr(authoritativeFrom)
		}
		return nil
	}
	t.Attempt.Lookups++
	if t.Attempt.Lookups < requiredLookups && !timing.Idempotent {
		t.NextTryAt = v1alpha1.NewTimePtr(now.Add(max(timing.Lag/2, firstRetry)))
		return nil
	}
	if timing.Idempotent || timing.Authoritative && !f.Proof {
		// The search covered all calls since the first ambiguous one and found nothing.
		t.Attempt.UnknownSince = nil
	}
	closeMissing(t, timing.Idempotent || timing.Authoritative || f.Proof, policy, now)
	return nil
}

// recordProcessing records the operation ID of a post that a lookup found in processing, after the call's response was
// lost or was a refusal that did not hold. Lookups then continue for as long as they would after a response with that
// ID.
func recordProcessing(t *v1alpha1.TargetStatus, operationID string, now time.Time) {
	a := t.Attempt
	if a.EndedAt == nil {
		a.EndedAt = v1alpha1.NewTimePtr(now)
	}
	a.OperationID, a.Lookups, a.Refusal, t.Blocked = cmp.Or(a.OperationID, operationID), 0, nil, nil
	t.NextTryAt = v1alpha1.NewTimePtr(now.Add(firstRetry))
}

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

// RecordLookupFailure records a lookup that got no usable response.
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
	case timing.Idempotent: // a later lookup settles the outcome, however late
	case taken && since > max(workFor, timing.LookupTimeout):
		closeUnknown(t, policy, now, "the platform accepted it and did not report its outcome in time: "+err.Problem)
		return nil
	case !taken && since > timing.LookupTimeout:
		closeUnknown(t, policy, now, "it could not be looked up: "+err.Error())
		return nil
	}
	scheduleLookup(t, callFinishedAt(t.Attempt, timing), err.RetryAt, now)
	b := blockedBy(v1alpha1.ReasonProcessing, err)
	if !taken {
		b.Reason, b.Problem = v1alpha1.ReasonSettling, "the response was lost, and it cannot be looked up yet: "+err.Problem
	}
	setBlocked(t, b)
	return nil
}

// scheduleLookup schedules the next lookup, no earlier than notBefore, at intervals that grow with the call's age.
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
