// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// Pauses between two tries of what was refused for the moment.
const (
	firstRetry = time.Second
	maxRetry   = 5 * time.Minute
)

// Record enters the result of the call of attempt id into the ledger. cards is
// how many cards the tree has, 0 or 1 for anything else: a target is posted
// when its last card is. It
// returns ErrNotOurs, and changes nothing, if the ledger speaks of another
// attempt by now. Entering the same result twice changes nothing. A result that
// comes when the attempt was closed as unknown is entered if it EndsDoubt.
func Record(t *v1alpha1.TargetStatus, id string, r platforms.Result, cards int, now time.Time) error {
	a := t.Attempt
	if a == nil || a.ID != id {
		return ErrNotOurs
	}
	switch {
	case IsOpen(a):
	case r.Outcome == platforms.Posted && a.Outcome == v1alpha1.OutcomePosted:
		return nil
	case EndsDoubt(a, r, cards):
		reopen(a)
	default:
		return ErrNotOurs
	}
	if nameless(r, cards) {
		// Its name must be found first.
		r = platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "the platform did not say under which id it published the card")}
	}
	switch r.Outcome {
	case platforms.Posted:
		posted(t, platforms.LookupResult{ExternalID: r.ExternalID, ExternalURL: r.ExternalURL, PostedAt: r.PostedAt}, cards, now)
	case platforms.Refused:
		a.Outcome = v1alpha1.OutcomeRefused
		refused(t, r.Err, pause(tries(t)), now)
	case platforms.NotSent:
		a.Outcome = v1alpha1.OutcomeNotSent
		tryAgain(t, v1alpha1.ReasonPlatformBusy, r.Err, pause(tries(t)), now)
	case platforms.Accepted:
		accepted(t, r, now)
	case platforms.Unknown:
		inDoubt(t, r.Err, now)
	default:
		inDoubt(t, platforms.Errorf(platforms.ClassUnknown, "unexpected verdict %q", r.Outcome), now)
	}
	return nil
}

// NotSent closes an attempt whose call was never begun by the process that
// claimed it.
func NotSent(t *v1alpha1.TargetStatus, id string, now time.Time) error {
	return Record(t, id, platforms.Result{Outcome: platforms.NotSent}, 0, now)
}

// posted enters what is published. Of a tree that is a card; the first one
// gives the target its id and address, and the last one settles it.
func posted(t *v1alpha1.TargetStatus, what platforms.LookupResult, cards int, now time.Time) {
	at := what.PostedAt
	if at.IsZero() {
		at = now
	}
	markPosted(t.Attempt)
	t.NextTryAt = nil
	if t.ExternalID == "" {
		t.ExternalID, t.ExternalURL = what.ExternalID, what.ExternalURL
		t.PostedAt = v1alpha1.NewTimePtr(at)
	}
	if cards > 1 {
		t.Cards = append(t.Cards, v1alpha1.CardStatus{Index: t.Attempt.Card, ExternalID: what.ExternalID, PostedAt: v1alpha1.NewTimePtr(at)})
		if len(t.Cards) < cards {
			t.Phase = v1alpha1.PhaseProcessing
			t.Reason, t.Message = v1alpha1.ReasonProcessing, fmt.Sprintf("%d of %d cards are published", len(t.Cards), cards)
			return
		}
	}
	t.Phase = v1alpha1.PhasePosted
	t.Reason, t.Message = v1alpha1.ReasonPosted, ""
	t.TryUntil = nil
}

// markPosted closes an attempt. One that did not publish says so for good: what
// a person found was published by another.
func markPosted(a *v1alpha1.Attempt) {
	if IsOpen(a) || a.Outcome == v1alpha1.OutcomeUnknown {
		a.Outcome = v1alpha1.OutcomePosted
	}
}

// EndsDoubt reports whether a result is worth entering although the attempt was
// closed as unknown meanwhile: it says what was published, or under which name
// the platform can be asked. cards is as in Record.
func EndsDoubt(a *v1alpha1.Attempt, r platforms.Result, cards int) bool {
	if a.Outcome != v1alpha1.OutcomeUnknown || nameless(r, cards) {
		return false
	}
	return r.Outcome == platforms.Posted || r.Outcome == platforms.Accepted && keepable(r.OperationID) && a.OperationID == ""
}

// nameless reports whether a card is published and nobody knows under which id:
// the next one could not hang from it.
func nameless(r platforms.Result, cards int) bool {
	return r.Outcome == platforms.Posted && r.ExternalID == "" && cards > 1
}

// reopen takes back that nobody can tell what became of an attempt. The looks
// in vain were not made by the name that the platform is asked by from now on.
func reopen(a *v1alpha1.Attempt) { a.Outcome, a.Lookups = "", 0 }

// Bare enters what nobody but the process that made the call knows, and
// nothing else that the schema might refuse: the id of what was published, or
// the name of what the platform works on. It reports whether that was entered.
func Bare(t *v1alpha1.TargetStatus, id string, r platforms.Result, cards int, now time.Time) bool {
	a := t.Attempt
	if a == nil || a.ID != id || !IsOpen(a) && !EndsDoubt(a, r, cards) {
		return false
	}
	switch {
	case r.Outcome == platforms.Posted && r.ExternalID != "":
		barePosted(t, r.ExternalID, cards)
	case r.Outcome == platforms.Accepted && keepable(r.OperationID):
		reopen(a)
		a.OperationID, a.EndedAt = r.OperationID, v1alpha1.NewTimePtr(now)
		t.Phase, t.Reason, t.Message = v1alpha1.PhaseProcessing, v1alpha1.ReasonProcessing, ""
	default:
		return false
	}
	return true
}

func barePosted(t *v1alpha1.TargetStatus, externalID string, cards int) {
	markPosted(t.Attempt)
	if t.ExternalID == "" {
		t.ExternalID = externalID
	}
	if cards > 1 {
		t.Cards = append(t.Cards, v1alpha1.CardStatus{Index: t.Attempt.Card, ExternalID: externalID})
		if len(t.Cards) < cards {
			t.Phase, t.Reason, t.Message = v1alpha1.PhaseProcessing, v1alpha1.ReasonProcessing, ""
			return
		}
	}
	t.Phase, t.Reason, t.Message = v1alpha1.PhasePosted, v1alpha1.ReasonPosted, ""
}

// tries is how many attempts were made of what is to be published next: those
// that published the cards before it do not count.
func tries(t *v1alpha1.TargetStatus) int32 {
	return max(t.Attempt.Number-NextCard(t), 1)
}

// NotPrepared enters that what precedes the call of a target could not be made.
// No attempt was opened, so that the pause before the next try follows from how
// long it has been tried, since the given time.
func NotPrepared(t *v1alpha1.TargetStatus, err *platforms.Error, since, now time.Time) error {
	switch {
	case IsOpen(t.Attempt):
		return ErrOpen
	case t.Phase == v1alpha1.PhasePosted || t.Phase == v1alpha1.PhaseFailed:
		return ErrSettled
	}
	wait := min(max(now.Sub(since), firstRetry), maxRetry)
	if err.Class == platforms.ClassUnknown {
		// Nobody can see the step whose outcome is unknown, and it may be
		// repeated.
		tryAgain(t, v1alpha1.ReasonPlatformBusy, err, wait, now)
		return nil
	}
	refused(t, err, wait, now)
	return nil
}

// refused plans what follows a refusal: another try after a pause, or none.
func refused(t *v1alpha1.TargetStatus, err *platforms.Error, wait time.Duration, now time.Time) {
	if err == nil {
		err = platforms.Errorf(platforms.ClassPermanent, "the platform refused the post without saying why")
	}
	switch err.Class {
	case platforms.ClassRateLimited, platforms.ClassQuota:
		tryAgain(t, v1alpha1.ReasonRateLimited, err, wait, now)
	case platforms.ClassTransient:
		tryAgain(t, v1alpha1.ReasonPlatformBusy, err, wait, now)
	case platforms.ClassRefresh, platforms.ClassReconnect:
		tryAgain(t, v1alpha1.ReasonConnectionNotReady, err, wait, now)
	case platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown:
		fail(t, v1alpha1.ReasonRefused, err.Error())
	default:
		fail(t, v1alpha1.ReasonRefused, err.Error())
	}
}

// tryAgain plans the next attempt of a target after a pause, or when the
// platform said, or fails the target with the platform's reason if that would
// be too late.
func tryAgain(t *v1alpha1.TargetStatus, reason string, err *platforms.Error, wait time.Duration, now time.Time) {
	at := now.Add(wait)
	message := "nothing was sent; trying again"
	if err != nil {
		message = err.Error()
		if err.RetryAt.After(now) {
			at = err.RetryAt
		}
	}
	if !inTime(t, at) {
		fail(t, reason, message)
		return
	}
	waitUntil(t, at, reason, message)
}

// inTime reports whether a target is still tried at a time.
func inTime(t *v1alpha1.TargetStatus, at time.Time) bool {
	return t.TryUntil == nil || !at.After(t.TryUntil.Time)
}

// waitUntil plans the next attempt of a target.
func waitUntil(t *v1alpha1.TargetStatus, at time.Time, reason, message string) {
	t.Phase = v1alpha1.PhaseProcessing
	t.Reason, t.Message = reason, clip(message)
	t.NextTryAt = v1alpha1.NewTimePtr(at)
}

// pause grows with the number of attempts. It lives in the ledger, not in a
// work queue, so that a restart does not stampede.
func pause(attempts int32) time.Duration {
	d := firstRetry
	for ; attempts > 1 && d < maxRetry; attempts-- {
		d *= 2
	}
	return min(d, maxRetry)
}

// maxMessage is the schema's bound on a target's message, in characters.
const maxMessage = 2048

// maxHandle is the schema's bound on an attempt's handle, in bytes at least.
const maxOperationID = 256

// clip shortens a message to what the schema takes: a status that it refused
// could not record the outcome.
func clip(message string) string { return clipTo(message, maxMessage) }

func clipTo(message string, most int) string {
	if utf8.RuneCountInString(message) <= most {
		return message
	}
	return string([]rune(message)[:most-1]) + "…"
}

// Fail settles a target that is not posted and has no open attempt. If nobody
// can tell whether an earlier call published, the reason is OutcomeUnknown
// instead of the given one, and the message tells both.
func Fail(t *v1alpha1.TargetStatus, reason, message string) error {
	if IsOpen(t.Attempt) {
		return ErrOpen
	}
	if t.Phase == v1alpha1.PhasePosted {
		return ErrSettled
	}
	fail(t, reason, message)
	return nil
}

// accepted enters that the platform works on what it took. Without a name for
// it that can be kept, it is in doubt like a call whose answer was lost.
func accepted(t *v1alpha1.TargetStatus, r platforms.Result, now time.Time) {
	inDoubt(t, r.Err, now)
	if !keepable(r.OperationID) {
		return
	}
	t.Attempt.OperationID = r.OperationID
	t.Reason, t.Message = v1alpha1.ReasonProcessing, "the platform has taken the post and works on it"
	if r.Err != nil {
		t.Message = clip(r.Err.Error())
	}
}

// keepable reports whether a platform's name for a call fits into the ledger.
func keepable(operationID string) bool {
	return operationID != "" && len(operationID) <= maxOperationID
}

func inDoubt(t *v1alpha1.TargetStatus, err *platforms.Error, now time.Time) {
	t.Attempt.EndedAt = v1alpha1.NewTimePtr(now)
	t.Phase = v1alpha1.PhaseProcessing
	t.Reason = v1alpha1.ReasonSettling
	t.Message = "the answer was lost; asking the platform whether it published"
	if err != nil {
		t.Attempt.Duplicate = err.Class == platforms.ClassDuplicate
		t.Message = clip(err.Error() + "; asking the platform whether it published")
	}
	t.NextTryAt = v1alpha1.NewTimePtr(now.Add(firstRetry))
}
