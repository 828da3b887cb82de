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

// Bounds of the backoff after a temporary refusal.
const (
	firstRetry = time.Second
	maxRetry   = 5 * time.Minute
)

// Record records the result of the call of attempt id in the entry. cards is the number of cards of a tree, or 0 or 1
// for any other post: a target is posted when its last card is. It returns ErrSuperseded, and changes nothing, if the
// entry holds another attempt or a closed one. Recording a result twice changes nothing. A result that arrives after
// the attempt was closed as unknown is recorded if it ResolvesUnknown.
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
		r = platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "the platform did not say under which id it published the card")}
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

// RecordNotSent closes an attempt whose call was never started by the process that claimed it.
func RecordNotSent(t *v1alpha1.TargetStatus, id string, now time.Time) error {
	return Record(t, id, platforms.Result{Outcome: platforms.NotSent}, 0, now)
}

// recordPosted records a publication. In a tree, it is one card: the first card provides the target's id and address,
// and the last one settles the target.
func recordPosted(t *v1alpha1.TargetStatus, what platforms.LookupResult, cards int, now time.Time) {
	at := what.PostedAt
	if at.IsZero() {
		at = now
	}
	// A person may have resolved an earlier attempt as posted; the outcome of this attempt is kept then.
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

// ResolvesUnknown reports whether a result should be recorded although the attempt was closed as unknown meanwhile: it
// contains the published post, or an operation id for lookups. cards is as in Record.
func ResolvesUnknown(a *v1alpha1.Attempt, r platforms.Result, cards int) bool {
	if a.Outcome != v1alpha1.OutcomeUnknown || lacksID(r, cards) {
		return false
	}
	return r.Outcome == platforms.Posted || r.Outcome == platforms.Accepted && storable(r.OperationID) && a.OperationID == ""
}

// lacksID reports whether a card was published without a known id, so that the next card cannot reply to it.
func lacksID(r platforms.Result, cards int) bool {
	return r.Outcome == platforms.Posted && r.ExternalID == "" && cards > 1
}

// reopen reopens an attempt that was closed as unknown. It resets the lookup count, because the earlier lookups did
// not use the operation id that is known now.
func reopen(t *v1alpha1.TargetStatus) {
	t.State = v1alpha1.TargetPending
	t.Attempt.Outcome, t.Attempt.Lookups = "", 0
}

// RecordIDs records only the facts that no other process can determine, and no other fields that the schema might
// reject: the id of the published post, or the operation id of a post that the platform is processing. It reports
// whether it recorded one.
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

// tries returns the number of attempts for the next content. Attempts that published earlier cards do not count.
func tries(t *v1alpha1.TargetStatus) int32 {
	return max(t.Attempt.Number-NextCard(t), 1)
}

// RecordNotPrepared records that the preparation of a target failed. No attempt was opened, so the pause before the
// retry grows with the time since the given start.
func RecordNotPrepared(t *v1alpha1.TargetStatus, err *platforms.Error, since, now time.Time) error {
	switch {
	case IsOpen(t.Attempt):
		return ErrOpen
	case posting.StateOf(t) != v1alpha1.TargetPending:
		return ErrSettled
	}
	wait := min(max(now.Sub(since), firstRetry), maxRetry)
	if err.Class == platforms.ClassUnknown {
		// A preparation with an unknown outcome may be repeated: its result is not visible.
		scheduleRetry(t, v1alpha1.ReasonPlatformBusy, err, wait, now)
		return nil
	}
	applyRefusal(t, err, wait, now)
	return nil
}

// inTime reports whether a time is within the deadline of a target.
func inTime(t *v1alpha1.TargetStatus, at time.Time) bool {
	return t.TryUntil == nil || !at.After(t.TryUntil.Time)
}

// Deadline returns the deadline of a target without the pauses that its platform announced, or zero if no deadline is
// set.
func Deadline(t *v1alpha1.TargetStatus) time.Time {
	switch {
	case t.InitialDeadline != nil:
		return t.InitialDeadline.Time
	case t.TryUntil != nil:
		return t.TryUntil.Time
	}
	return time.Time{}
}

// backoff returns the pause after a number of attempts. That number is stored in the entry and not in a work queue, so
// that a restart does not cause a stampede.
func backoff(attempts int32) time.Duration {
	d := firstRetry
	for ; attempts > 1 && d < maxRetry; attempts-- {
		d *= 2
	}
	return min(d, maxRetry)
}

// maxOperationID is the maximum length of an operation id in bytes. The schema allows at least that.
const maxOperationID = 256

// Fail settles a target that is not posted and has no open attempt. If an earlier call may have published it, the
// target becomes undecided, and its problem mentions both causes.
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

// recordAccepted records that the platform has accepted the post for processing. Without a storable operation id, the
// outcome is as unclear as after a lost response. An operation id from an earlier lookup is kept.
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

// storable reports whether an operation id fits into the entry.
func storable(operationID string) bool {
	return operationID != "" && len(operationID) <= maxOperationID
}

// recordUnclear records that the call of an open attempt has ended without a clear answer.
func recordUnclear(t *v1alpha1.TargetStatus, err *platforms.Error, now time.Time) {
	t.Attempt.EndedAt = v1alpha1.NewTimePtr(now)
	t.NextTryAt = v1alpha1.NewTimePtr(now.Add(firstRetry))
	if err == nil {
		err = answerLost
	}
	t.Attempt.Duplicate = err.Class == platforms.ClassDuplicate
	setBlocked(t, blockedBy(v1alpha1.ReasonSettling, err))
}
