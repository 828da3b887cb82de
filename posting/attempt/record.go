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

// Pauses between two tries of what was refused for the moment.
const (
	firstRetry = time.Second
	maxRetry   = 5 * time.Minute
)

// Record enters the result of the call of attempt id into the entry. cards is
// how many cards the tree has, 0 or 1 for anything else: a target is posted
// when its last card is. It returns ErrSuperseded, and changes nothing, if the
// entry does not speak of this attempt any more. Entering the same result
// twice changes nothing. A result that comes after the attempt was closed as
// unknown is entered if it ResolvesUnknown.
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

// RecordNotSent closes an attempt whose call was never begun by the process that
// claimed it.
func RecordNotSent(t *v1alpha1.TargetStatus, id string, now time.Time) error {
	return Record(t, id, platforms.Result{Outcome: platforms.NotSent}, 0, now)
}

// recordPosted enters what is published. Of a tree that is a card; the first one
// gives the target its id and address, and the last one settles it.
func recordPosted(t *v1alpha1.TargetStatus, what platforms.LookupResult, cards int, now time.Time) {
	at := what.PostedAt
	if at.IsZero() {
		at = now
	}
	// A person may have found that an attempt before this one published: what
	// this one says of itself stays.
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

// ResolvesUnknown reports whether a result is worth entering although the attempt
// was closed as unknown meanwhile: it says what was published, or the operation
// id by which the platform can be asked. cards is as in Record.
func ResolvesUnknown(a *v1alpha1.Attempt, r platforms.Result, cards int) bool {
	if a.Outcome != v1alpha1.OutcomeUnknown || lacksID(r, cards) {
		return false
	}
	return r.Outcome == platforms.Posted || r.Outcome == platforms.Accepted && storable(r.OperationID) && a.OperationID == ""
}

// lacksID reports whether a card is published under an id that the platform did
// not tell: the next one could not hang from it.
func lacksID(r platforms.Result, cards int) bool {
	return r.Outcome == platforms.Posted && r.ExternalID == "" && cards > 1
}

// reopen takes back that an attempt was closed as unknown. Its lookups do not
// count: they were not made by the operation id that is known from now on.
func reopen(t *v1alpha1.TargetStatus) {
	t.State = v1alpha1.TargetPending
	t.Attempt.Outcome, t.Attempt.Lookups = "", 0
}

// RecordIDs enters what only the process that made the call knows, and nothing
// else that the schema might refuse: the id of what was published, or the
// operation id of what the platform works on. It reports whether it did.
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

// tries is how many attempts were made of what is to be published next: those
// that published the cards before it do not count.
func tries(t *v1alpha1.TargetStatus) int32 {
	return max(t.Attempt.Number-NextCard(t), 1)
}

// RecordNotPrepared enters that what precedes the call of a target could not be made.
// No attempt was opened, so that the pause before the next try follows from how
// long it has been tried, since the given time.
func RecordNotPrepared(t *v1alpha1.TargetStatus, err *platforms.Error, since, now time.Time) error {
	switch {
	case IsOpen(t.Attempt):
		return ErrOpen
	case posting.StateOf(t) != v1alpha1.TargetPending:
		return ErrSettled
	}
	wait := min(max(now.Sub(since), firstRetry), maxRetry)
	if err.Class == platforms.ClassUnknown {
		// A step whose outcome is unknown may be repeated: its result is not
		// visible.
		scheduleRetry(t, v1alpha1.ReasonPlatformBusy, err, wait, now)
		return nil
	}
	applyRefusal(t, err, wait, now)
	return nil
}

// inTime reports whether a target is still tried at a time.
func inTime(t *v1alpha1.TargetStatus, at time.Time) bool {
	return t.TryUntil == nil || !at.After(t.TryUntil.Time)
}

// Deadline returns until when a target is tried, pauses that its platform announced
// left out; zero if that is not entered.
func Deadline(t *v1alpha1.TargetStatus) time.Time {
	switch {
	case t.InitialDeadline != nil:
		return t.InitialDeadline.Time
	case t.TryUntil != nil:
		return t.TryUntil.Time
	}
	return time.Time{}
}

// backoff grows with the number of attempts. It lives in the entry, not in a
// work queue, so that a restart does not stampede.
func backoff(attempts int32) time.Duration {
	d := firstRetry
	for ; attempts > 1 && d < maxRetry; attempts-- {
		d *= 2
	}
	return min(d, maxRetry)
}

// maxOperationID is the schema's bound on an operation id, in bytes at least.
const maxOperationID = 256

// Fail settles a target that is not posted and has no open attempt. If it is
// ambiguous whether an earlier call published, only a person can settle it: the
// problem then tells both.
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

// recordAccepted enters that the platform works on what it took. Without an operation
// id that can be stored, that is as unclear as a call whose answer was lost. An id that
// a lookup told before stays.
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

// recordUnclear enters that the call of an open attempt has ended without a clear
// answer.
func recordUnclear(t *v1alpha1.TargetStatus, err *platforms.Error, now time.Time) {
	t.Attempt.EndedAt = v1alpha1.NewTimePtr(now)
	t.NextTryAt = v1alpha1.NewTimePtr(now.Add(firstRetry))
	if err == nil {
		err = answerLost
	}
	t.Attempt.Duplicate = err.Class == platforms.ClassDuplicate
	setBlocked(t, blockedBy(v1alpha1.ReasonSettling, err))
}
