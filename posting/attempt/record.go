// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// The shortest and longest backoff after a temporary refusal.
const (
	firstRetry = time.Second
	maxRetry   = 5 * time.Minute
)

// Record records the result of the call of attempt id in the entry. cards is the number of tree cards, or 0 or 1 for
// other posts; publishing the last card makes the target posted. Record returns ErrSuperseded, without changing
// anything, if the entry contains another attempt or a closed one. Recording the same result again has no effect. The
// result of an attempt closed as unknown is recorded if it ResolvesUnknown.
func Record(t *v1alpha1.TargetStatus, id string, r platforms.Result, cards int, now time.Time) error {
	a := t.Attempt
	if a == nil || a.ID != id {
		return ErrSuperseded
	}
	switch {
	case IsOpen(a):
	case r.Outcome == platforms.Posted && a.Outcome == v1alpha1.OutcomePosted:
		return nil
	case ResolvesUnknown(a, r, cards):
		reopen(t)
	default:
		return ErrSuperseded
	}
	if lacksID(r, cards) {
		r = platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "the platform did not return the id of the published card")}
	}
	switch r.Outcome {
	case platforms.Posted:
		recordPosted(t, platforms.LookupResult{ExternalID: r.ExternalID, ExternalURL: r.ExternalURL, PostedAt: r.PostedAt}, cards, now)
	case platforms.Refused:
		if a.Refusal == nil {
			recordRefusal(t, &r, now)
		}
	case platforms.NotSent:
		a.Outcome = v1alpha1.OutcomeNotSent
		if r.Withheld {
			t.Blocked, t.NextTryAt = nil, nil
			return nil
		}
		scheduleRetry(t, v1alpha1.ReasonPlatformBusy, r.Err, backoff(tries(t)), now)
	case platforms.Accepted:
		recordAccepted(t, r, now)
	case platforms.Unknown:
		recordUnclear(t, r.Err, now)
	default:
		recordUnclear(t, platforms.Errorf(platforms.ClassUnknown, "unexpected outcome %q", r.Outcome), now)
	}
	return nil
}

// recordPosted records a publication. A tree's first card provides the ID and URL, and its last card settles the
// target.
func recordPosted(t *v1alpha1.TargetStatus, what platforms.LookupResult, cards int, now time.Time) {
	at := what.PostedAt
	if at.IsZero() {
		at = now
	}
	// A user may have resolved an earlier attempt as posted; this attempt then keeps its outcome.
	if IsOpen(t.Attempt) || t.Attempt.Outcome == v1alpha1.OutcomeUnknown {
		t.Attempt.Outcome, t.Attempt.Refusal = v1alpha1.OutcomePosted, nil
	}
	t.Blocked, t.NextTryAt = nil, nil
	if t.ExternalID == "" {
		t.ExternalID, t.ExternalURL = what.ExternalID, what.ExternalURL
		t.PostedAt = v1alpha1.NewTimePtr(at)
	}
	if cards > 1 {
		t.Cards = append(t.Cards, v1alpha1.CardStatus{Index: t.Attempt.Card, ExternalID: what.ExternalID, PostedAt: v1alpha1.NewTimePtr(at)})
		if len(t.Cards) < cards {
			t.State = v1alpha1.TargetPending
			return
		}
	}
	t.State = v1alpha1.TargetPosted
	t.TryUntil = nil
}

// ResolvesUnknown reports whether a result is recorded even though the attempt has been closed as unknown: because it
// contains the published post, or an operation ID for lookups. cards has the same meaning as in Record.
func ResolvesUnknown(a *v1alpha1.Attempt, r platforms.Result, cards int) bool {
	if a.Outcome != v1alpha1.OutcomeUnknown || lacksID(r, cards) {
		return false
	}
	return r.Outcome == platforms.Posted || r.Outcome == platforms.Accepted && storable(r.OperationID) && a.OperationID == ""
}

// lacksID reports whether a card was published without a known ID, which the reply with the next card needs.
func lacksID(r platforms.Result, cards int) bool {
	return r.Outcome == platforms.Posted && r.ExternalID == "" && cards > 1
}

// reopen reopens an attempt closed as unknown. Earlier lookups no longer count: they did not use the operation ID.
func reopen(t *v1alpha1.TargetStatus) {
	t.State = v1alpha1.TargetPending
	t.Attempt.Outcome, t.Attempt.Lookups = "", 0
}

// RecordIDs records only facts that other processes cannot determine, and omits fields that the schema might reject:
// the ID of a published post, or the operation ID of one in processing. It reports whether there was such a fact.
func RecordIDs(t *v1alpha1.TargetStatus, id string, r platforms.Result, cards int, now time.Time) bool {
	a := t.Attempt
	if a == nil || a.ID != id || !IsOpen(a) && !ResolvesUnknown(a, r, cards) {
		return false
	}
	switch {
	case r.Outcome == platforms.Posted && r.ExternalID != "":
		recordPosted(t, platforms.LookupResult{ExternalID: r.ExternalID}, cards, now)
	case r.Outcome == platforms.Accepted && storable(r.OperationID):
		reopen(t)
		a.OperationID, a.EndedAt, t.Blocked = cmp.Or(a.OperationID, r.OperationID), v1alpha1.NewTimePtr(now), nil
	default:
		return false
	}
	return true
}

// tries returns the number of attempts for the next content, not counting those that published earlier cards.
func tries(t *v1alpha1.TargetStatus) int32 {
	return max(t.Attempt.Number-NextCard(t), 1)
}

// RecordNotPrepared records a failed preparation. If there is no attempt, the backoff grows with the time that has
// passed since the given time.
func RecordNotPrepared(t *v1alpha1.TargetStatus, err *platforms.Error, since, now time.Time) error {
	switch {
	case IsOpen(t.Attempt):
		return ErrOpen
	case posting.StateOf(t) != v1alpha1.TargetPending:
		return ErrSettled
	}
	wait := min(max(now.Sub(since), firstRetry), maxRetry)
	if err.Class == platforms.ClassUnknown {
		// A preparation with an unknown outcome can be repeated, because its result is not visible.
		scheduleRetry(t, v1alpha1.ReasonPlatformBusy, err, wait, now)
		return nil
	}
	applyRefusal(t, err, wait, now)
	return nil
}

func inTime(t *v1alpha1.TargetStatus, at time.Time) bool {
	return t.TryUntil == nil || !at.After(t.TryUntil.Time)
}

// Deadline returns a target's deadline, not counting announced pauses, or zero if it has none.
func Deadline(t *v1alpha1.TargetStatus) time.Time {
	switch {
	case t.InitialDeadline != nil:
		return t.InitialDeadline.Time
	case t.TryUntil != nil:
		return t.TryUntil.Time
	}
	return time.Time{}
}

// backoff returns the pause after the given number of attempts. The count is stored in the entry and not in a work
// queue, which avoids a stampede after a restart.
func backoff(attempts int32) time.Duration {
	d := firstRetry
	for ; attempts > 1 && d < maxRetry; attempts-- {
		d *= 2
	}
	return min(d, maxRetry)
}

// maxOperationID is the maximum operation ID length in bytes, within the schema's limit.
const maxOperationID = 256

// Fail settles an unpublished target that has no open attempt. If an earlier call may have published it, the target
// becomes undecided and its problem names both causes.
func Fail(t *v1alpha1.TargetStatus, b v1alpha1.Blocked) error {
	if IsOpen(t.Attempt) {
		return ErrOpen
	}
	if posting.StateOf(t) == v1alpha1.TargetPosted {
		return ErrSettled
	}
	fail(t, b)
	return nil
}

// recordAccepted records that the platform accepted the post for processing. Without an operation ID that can be
// stored, this counts as a lost response. An operation ID from an earlier lookup is kept.
func recordAccepted(t *v1alpha1.TargetStatus, r platforms.Result, now time.Time) {
	recordUnclear(t, r.Err, now)
	if !storable(r.OperationID) {
		return
	}
	t.Attempt.OperationID, t.Blocked = cmp.Or(t.Attempt.OperationID, r.OperationID), nil
	if r.Err != nil {
		setBlocked(t, blockedBy(v1alpha1.ReasonProcessing, r.Err))
	}
}

func storable(operationID string) bool {
	return operationID != "" && len(operationID) <= maxOperationID
}

func recordUnclear(t *v1alpha1.TargetStatus, err *platforms.Error, now time.Time) {
	t.Attempt.EndedAt = v1alpha1.NewTimePtr(now)
	t.NextTryAt = v1alpha1.NewTimePtr(now.Add(firstRetry))
	if err == nil {
		err = answerLost
	}
	t.Attempt.Duplicate = err.Class == platforms.ClassDuplicate
	setBlocked(t, blockedBy(v1alpha1.ReasonSettling, err))
}
