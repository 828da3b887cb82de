// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attempt is the write-ahead log of delivery. It decides when a call to a platform may be made, interprets the
// response, and resolves a call whose response was lost. The package is pure: it changes only the facts of the given
// entry, and the caller stores the entry.
//
// It keeps these invariants, for each target separately:
//
//   - An attempt records at most one irrevocable call. Another call needs another attempt with a higher number.
//   - A new attempt is opened only when the previous one is closed as refused, not sent or absent, or as unknown if
//     the post allows a resend.
//   - A refusal closes an attempt only after a lookup confirms that nothing was published, or after the lookup has
//     failed.
//   - An open attempt past its window is resolved by a lookup, never by a call.
//   - A known external id is never replaced.
package attempt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// Errors of opening or changing an attempt.
var (
	// ErrOpen: an earlier call may still have taken effect.
	ErrOpen = errors.New("an earlier attempt is still open")
	// ErrSettled: the target is not pending.
	ErrSettled = errors.New("the target is settled")
	// ErrSuperseded: the entry holds another attempt, or this one is closed.
	ErrSuperseded = errors.New("another attempt has taken this one's place")
)

// Timing holds the time limits of the protocol.
type Timing struct {
	// SendWindow is the time after a claim within which its call must start.
	SendWindow time.Duration
	// CallTimeout is the timeout of the call.
	CallTimeout time.Duration
	// ClockMargin is the maximum difference between the clocks of two managers, or of a manager and a platform.
	ClockMargin time.Duration
	// Lag is how long a published post may be missing from a listing.
	Lag time.Duration
	// ConfirmAfter is the delay between a refused call and the lookup that checks whether the call published
	// nevertheless.
	ConfirmAfter time.Duration
	// LookupTimeout is how long an attempt is looked up past its window. For a post that the platform has accepted,
	// the minimum is a day.
	LookupTimeout time.Duration
	// Authoritative is set if absence from the listing past its lag proves that the post was not published.
	Authoritative bool
}

// IsOpen reports whether an attempt was claimed and has no recorded outcome.
func IsOpen(a *v1alpha1.Attempt) bool { return a != nil && a.Outcome == "" }

// Claim holds the parameters of a new attempt.
type Claim struct {
	// ID is the unique id of the attempt.
	ID string
	// ContentHash identifies the claimed content; see the function ContentHash.
	ContentHash string
	// AccountID is the platform's id of the publishing account.
	AccountID string
	// Checkpoint is the platform's reference to the prepared content; may be empty.
	Checkpoint string
	// Window is the time after the claim within which the call must start.
	Window time.Duration
	// SentBefore is when the first call for an earlier object of the post was claimed, or zero if there was none.
	SentBefore time.Time
	// Card is the index of the next card of a tree, or 0 outside trees.
	Card int32
}

// NextCard returns the index of the first unpublished card of a tree, or 0 outside trees.
func NextCard(t *v1alpha1.TargetStatus) int32 {
	if t == nil {
		return 0
	}
	return int32(len(t.Cards)) //nolint:gosec // a tree has at most 100 cards
}

// continuesTree reports whether the next call may follow a published card: a tree continues after its last published
// card. The previous attempt need not be the one that published that card, because a person may have resolved an
// earlier one as posted.
func continuesTree(t *v1alpha1.TargetStatus, c Claim) bool {
	return t.Attempt != nil && !IsOpen(t.Attempt) && t.Attempt.Card == c.Card-1 && NextCard(t) == c.Card
}

// Open claims the next call for a target by adding a new attempt to the entry. The caller must store the entry under
// the resourceVersion that was read before it sends anything.
func Open(t *v1alpha1.TargetStatus, c Claim, now time.Time) error {
	prev := t.Attempt
	nextCard := continuesTree(t, c)
	switch {
	case posting.StateOf(t) != v1alpha1.TargetPending:
		return ErrSettled
	case IsOpen(prev):
		return ErrOpen
	case c.Card != NextCard(t):
		return ErrSettled
	case len(t.Cards) == 0 && t.ExternalID != "":
		return ErrSettled
	case prev != nil && prev.Outcome == v1alpha1.OutcomePosted && !nextCard:
		return ErrSettled
	}
	next := &v1alpha1.Attempt{
		Number:      1,
		ID:          c.ID,
		StartedAt:   v1alpha1.NewTime(now),
		SendBefore:  v1alpha1.NewTime(now.Add(c.Window)),
		ContentHash: c.ContentHash,
		AccountID:   c.AccountID,
		Checkpoint:  c.Checkpoint,
		Card:        c.Card,
	}
	if prev != nil {
		next.Number = prev.Number + 1
	}
	switch {
	case prev == nil:
		next.SearchFrom = sentBefore(c.SentBefore, now)
	case !nextCard:
		next.SearchFrom, next.UnknownSince = firstSent(prev, now), AmbiguousSince(t)
	}
	t.Attempt, t.State = next, v1alpha1.TargetPending
	t.Blocked, t.NextTryAt = nil, nil
	return nil
}

// searchBack is how far a search reaches back for calls that were answered. The containers of Threads and Instagram
// and the photos of a Page expire after a day, so that older preparations cannot become visible.
const searchBack = 24 * time.Hour

// firstSent returns the start of the earliest attempt, up to and including this one, whose call may have reached the
// platform. Refused calls count, because the platform may have published the post nevertheless.
func firstSent(a *v1alpha1.Attempt, now time.Time) *v1alpha1.Time {
	switch {
	case a.SearchFrom != nil:
		return a.SearchFrom
	case a.Outcome == v1alpha1.OutcomeNotSent && a.EndedAt == nil && a.Lookups == 0:
		return nil
	case a.Outcome == v1alpha1.OutcomeRefused:
		return sentBefore(a.StartedAt.Time, now)
	default:
		return v1alpha1.NewTimePtr(a.StartedAt.Time)
	}
}

// sentBefore returns the time at, or nil if it is zero or older than searchBack.
func sentBefore(at, now time.Time) *v1alpha1.Time {
	if at.IsZero() || now.Sub(at) > searchBack {
		return nil
	}
	return v1alpha1.NewTimePtr(at)
}

// searchMargin is how far the platform's clock may be behind the manager's. It is generous: an older post is
// distinguished by its text and its owner, but a search that starts too late would report a published post as absent.
const searchMargin = time.Minute

// SearchFrom returns the earliest time, by the platform's clock, when the post of an attempt can have been published.
func SearchFrom(a *v1alpha1.Attempt) time.Time {
	from := a.StartedAt.Time
	if a.SearchFrom != nil {
		from = a.SearchFrom.Time
	}
	return from.Add(-searchMargin)
}

// SameAccount reports whether an account is the one that the attempt called. A lookup with another account would prove
// nothing.
func SameAccount(a *v1alpha1.Attempt, accountID string) bool {
	return a.AccountID == "" || a.AccountID == accountID
}

// Checkpoint returns the checkpoint of an earlier attempt if it was made for the same content. Otherwise it returns
// "".
func Checkpoint(a *v1alpha1.Attempt, contentHash string) string {
	if a == nil || a.ContentHash != contentHash {
		return ""
	}
	return a.Checkpoint
}

// MaySend reports whether the call of a claimed attempt may still start.
func MaySend(a *v1alpha1.Attempt, now time.Time) bool {
	return IsOpen(a) && now.Before(a.SendBefore.Time)
}

// callFinishedAt returns when the call of an attempt is certainly over: its observed end, or else the latest time when
// a process can still be executing it.
func callFinishedAt(a *v1alpha1.Attempt, timing Timing) time.Time {
	if a.EndedAt != nil {
		return a.EndedAt.Time
	}
	return a.SendBefore.Add(timing.CallTimeout + timing.ClockMargin)
}

// CallFinished reports whether the call of an open attempt is certainly over.
func CallFinished(a *v1alpha1.Attempt, timing Timing, now time.Time) bool {
	return !now.Before(callFinishedAt(a, timing))
}

// proofFrom returns the earliest time for a lookup whose negative result can prove absence. The bytes of a call may
// have left just before its end on this side, so the platform may process them for another call timeout. The recorded
// end of a call comes from the clock of the process that made it, which may be behind the clock of the process that
// looks up. Without a recorded end, callFinishedAt includes that margin already.
func proofFrom(a *v1alpha1.Attempt, timing Timing) time.Time {
	from := callFinishedAt(a, timing).Add(timing.CallTimeout + timing.Lag)
	if a.EndedAt != nil {
		from = from.Add(timing.ClockMargin)
	}
	return from
}

// hashVersion is the prefix of each hash. A preparation with a different hash is repeated. A release that hashes other
// inputs uses the next version, and continues to compute this one for recorded hashes, so that it does not invalidate
// every upload at once.
const hashVersion = "1-"

// hashBytes are enough to distinguish contents, and few enough to be repeated in each object.
const hashBytes = 16

// ContentHash identifies the subject of a claim: the connection, its account, and everything that is sent.
func ContentHash(connectionUID, accountID string, content ...string) string {
	h := sha256.New()
	for _, part := range append([]string{connectionUID, accountID}, content...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hashVersion + hex.EncodeToString(h.Sum(nil)[:hashBytes])
}
