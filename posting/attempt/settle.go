// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"fmt"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// lookupsNeeded is how many authoritative lookups must miss a post before it
// counts as absent.
const lookupsNeeded = 2

// workFor is how long a platform may work on what it has taken. TikTok takes
// minutes, gives up after an hour what it cannot fetch, and moderates for hours
// at times.
const workFor = 24 * time.Hour

// NextLookup is when an open attempt is to be looked for. Before that nobody may
// look: another process may be in the middle of the call.
func NextLookup(t *v1alpha1.TargetStatus, timing Timing) time.Time {
	quiet := quietAt(t.Attempt, timing)
	if t.NextTryAt != nil && t.NextTryAt.After(quiet) {
		return t.NextTryAt.Time
	}
	return quiet
}

// RecordLookup enters what a lookup found into the ledger of an open attempt. policy
// decides what happens to an outcome that the platform cannot tell; cards is as
// in Record.
func RecordLookup(t *v1alpha1.TargetStatus, f platforms.LookupResult, timing Timing, policy v1alpha1.UnknownOutcomePolicy, cards int, now time.Time) error {
	if !IsOpen(t.Attempt) {
		return ErrSettled
	}
	authoritativeFrom := proofFrom(t.Attempt, timing)
	switch {
	case f.Matches == 1:
		posted(t, f, cards, now)
		return nil
	case f.Matches > 1:
		unknown(t, v1alpha1.OnUnknownFail, now, fmt.Sprintf("%d posts of the account fit, so it cannot be told which is this one", f.Matches))
		return nil
	case f.Refused != nil:
		t.Attempt.Outcome = v1alpha1.OutcomeRefused
		refused(t, f.Refused, pause(tries(t)), now)
		return nil //nolint:nilerr // the refusal is what was found
	case now.Before(authoritativeFrom):
		again(t, timing, now)
		if t.NextTryAt.After(authoritativeFrom) {
			t.NextTryAt = v1alpha1.NewTimePtr(authoritativeFrom)
		}
		return nil
	}
	t.Attempt.Lookups++
	if t.Attempt.Lookups < lookupsNeeded {
		t.NextTryAt = v1alpha1.NewTimePtr(now.Add(max(timing.Lag/2, firstRetry)))
		return nil
	}
	if timing.Authoritative && !f.Proof {
		// The listing was searched from the first call in doubt on, so that it
		// shows none of them.
		t.Attempt.UnknownSince = nil
	}
	missing(t, timing.Authoritative || f.Proof, policy, now)
	return nil
}

// missing closes an attempt that was looked for in vain; proven says that this
// proves its absence.
func missing(t *v1alpha1.TargetStatus, proven bool, policy v1alpha1.UnknownOutcomePolicy, now time.Time) {
	switch {
	case !proven:
		unknown(t, policy, now, "the account's listing does not show it, which is no proof on this platform")
	case t.Attempt.Duplicate:
		t.Attempt.Outcome = v1alpha1.OutcomeRefused
		fail(t, v1alpha1.ReasonRefused, "the platform refused the post because the account has published the same content before; change the text and post again")
	default:
		t.Attempt.Outcome = v1alpha1.OutcomeAbsent
		tryAgain(t, v1alpha1.ReasonPlatformBusy, platforms.Errorf(platforms.ClassTransient,
			"the platform did not publish the post although it was sent; sending it again"), pause(tries(t)), now)
	}
}

// RecordLookupFailure records that a lookup got no usable answer.
func RecordLookupFailure(t *v1alpha1.TargetStatus, err *platforms.Error, timing Timing, policy v1alpha1.UnknownOutcomePolicy, now time.Time) error {
	if !IsOpen(t.Attempt) {
		return ErrSettled
	}
	since := now.Sub(quietAt(t.Attempt, timing))
	switch taken := t.Attempt.OperationID != ""; {
	case taken && since > max(workFor, timing.GiveUpAfter):
		said, _, _ := strings.Cut(err.Error(), "; Herald asks")
		unknown(t, policy, now, "the platform took it and did not say in time what became of it: "+said)
		return nil
	case !taken && since > timing.GiveUpAfter:
		unknown(t, policy, now, "the platform could not be asked: "+err.Error())
		return nil
	}
	again(t, timing, now)
	if err.RetryAt.After(t.NextTryAt.Time) {
		t.NextTryAt = v1alpha1.NewTimePtr(err.RetryAt)
	}
	if t.Attempt.OperationID != "" {
		t.Message = clip(err.Error())
		return nil
	}
	t.Message = clip("the answer was lost, and the platform cannot be asked yet: " + err.Error())
	return nil
}

// again plans another look, the later the longer it has been.
func again(t *v1alpha1.TargetStatus, timing Timing, now time.Time) {
	wait := min(max(now.Sub(quietAt(t.Attempt, timing)), firstRetry), maxRetry)
	t.NextTryAt = v1alpha1.NewTimePtr(now.Add(wait))
	if t.Attempt.OperationID == "" {
		t.Reason = v1alpha1.ReasonSettling
	}
}
