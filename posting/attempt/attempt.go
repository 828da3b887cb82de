// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attempt is the write-ahead record of delivery: when a call to a
// platform may be made, what its answer means, and how a call whose answer was
// lost is settled. It is pure: it changes the facts of the entry that it
// is given, and the caller stores the entry.
//
// The invariants it keeps, for each target on its own:
//
//   - One record stands for at most one irrevocable call. Another call needs
//     another record with a higher number.
//   - A new record is opened only when the previous one is closed as refused,
//     not sent or absent, or as unknown where the post allows to send again.
//   - A refusal closes a record only after the platform was asked whether it
//     published all the same, or cannot be asked.
//   - An open record past its window is settled by a lookup, never by a call.
//   - An external id, once known, is never replaced.
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

// The reasons for which a record cannot be opened or changed.
var (
	// ErrOpen: an earlier call may still have taken effect.
	ErrOpen = errors.New("an earlier attempt is still open")
	// ErrSettled: the target is not pending.
	ErrSettled = errors.New("the target is settled")
	// ErrSuperseded: the entry does not speak of this attempt any more.
	ErrSuperseded = errors.New("another attempt has taken this one's place")
)

// Timing holds the times that the protocol works with.
type Timing struct {
	// SendWindow is how long after its claim a call may still be begun.
	SendWindow time.Duration
	// CallTimeout bounds the call itself.
	CallTimeout time.Duration
	// ClockMargin is how far the clocks of two managers, or of a manager and a
	// platform, may differ.
	ClockMargin time.Duration
	// Lag is how long a published post may be missing from a listing.
	Lag time.Duration
	// ConfirmAfter is how long after a refused call the platform is asked whether
	// the call published all the same.
	ConfirmAfter time.Duration
	// LookupTimeout bounds how long an attempt is looked up past its window; what
	// the platform has taken, for a day at least.
	LookupTimeout time.Duration
	// Authoritative says that absence from the listing past its lag is proof.
	Authoritative bool
}

// IsOpen reports whether a call was claimed whose outcome is not recorded.
func IsOpen(a *v1alpha1.Attempt) bool { return a != nil && a.Outcome == "" }

// Claim is what a new attempt is opened with.
type Claim struct {
	// ID names the attempt; no other one ever has it.
	ID string
	// ContentHash identifies what is claimed; see ContentHash.
	ContentHash string
	// AccountID is the platform's id of the account that is called.
	AccountID string
	// Checkpoint names what was prepared for it on the platform; may be empty.
	Checkpoint string
	// Window is how long after the claim the call may be begun.
	Window time.Duration
	// SentBefore is when the first call for an earlier object of the post was
	// claimed; zero if there was none.
	SentBefore time.Time
	// Card is the index of the card of a tree that is to be published; 0
	// outside trees.
	Card int32
}

// NextCard is the index of the first card of a tree that is not published; 0
// outside trees.
func NextCard(t *v1alpha1.TargetStatus) int32 {
	if t == nil {
		return 0
	}
	return int32(len(t.Cards)) //nolint:gosec // a tree has at most 100 cards
}

// continuesTree reports whether the next call may follow a card that is published: a
// tree goes on where it stands. The attempt before need not be the one that
// published it, for a person may have found an earlier one's.
func continuesTree(t *v1alpha1.TargetStatus, c Claim) bool {
	return t.Attempt != nil && !IsOpen(t.Attempt) && t.Attempt.Card == c.Card-1 && NextCard(t) == c.Card
}

// Open claims the next call for a target: it puts a new record into the entry.
// The caller stores the entry under the resourceVersion that it was read with
// before any byte is sent.
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

// searchBack bounds how far a search reaches back for calls that were answered: the
// containers of Threads and Instagram and the photos of a Page last a day, so that
// nothing which was prepared earlier can become visible.
const searchBack = 24 * time.Hour

// firstSent returns the start of the earliest attempt, up to and including this one,
// whose call may have reached the platform: a platform that refuses a call may have
// published it.
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

// sentBefore returns a time at which something was sent, if that is not longer ago than
// a search reaches back.
func sentBefore(at, now time.Time) *v1alpha1.Time {
	if at.IsZero() || now.Sub(at) > searchBack {
		return nil
	}
	return v1alpha1.NewTimePtr(at)
}

// searchMargin is how far the platform's clock may be behind the manager's. It
// is generous: an older post is told apart by its text and its owner, but a
// search that begins too late would take a published post for absent.
const searchMargin = time.Minute

// SearchFrom is the earliest time at which the post of an attempt can have been
// published, by the platform's clock.
func SearchFrom(a *v1alpha1.Attempt) time.Time {
	from := a.StartedAt.Time
	if a.SearchFrom != nil {
		from = a.SearchFrom.Time
	}
	return from.Add(-searchMargin)
}

// SameAccount reports whether an account is the one that the attempt called.
// One that is not must not be asked: its answer would prove nothing.
func SameAccount(a *v1alpha1.Attempt, accountID string) bool {
	return a.AccountID == "" || a.AccountID == accountID
}

// Checkpoint returns what was prepared for an earlier attempt and can serve the
// next one: it was made for the same content. Otherwise, or if nothing was
// prepared, it is empty.
func Checkpoint(a *v1alpha1.Attempt, contentHash string) string {
	if a == nil || a.ContentHash != contentHash {
		return ""
	}
	return a.Checkpoint
}

// MaySend reports whether the call of a claimed attempt may still be begun.
func MaySend(a *v1alpha1.Attempt, now time.Time) bool {
	return IsOpen(a) && now.Before(a.SendBefore.Time)
}

// callFinishedAt is when the call of an attempt is certainly over: when it was seen
// to end, or else when no process can still be in the middle of it.
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

// proofFrom is from when on a lookup that does not find the post may prove that
// there is none. When the call is over on this side its bytes may have left a
// moment before, so that the platform may work on them for as long as a call
// may take. The end of a call is told by the clock of the process that made it,
// which may be behind that of the one that looks up; where no process saw the
// end, callFinishedAt includes the margin already.
func proofFrom(a *v1alpha1.Attempt, timing Timing) time.Time {
	from := callFinishedAt(a, timing).Add(timing.CallTimeout + timing.Lag)
	if a.EndedAt != nil {
		from = from.Add(timing.ClockMargin)
	}
	return from
}

// hashVersion stands in front of each hash. What was prepared under a hash that
// differs is made again. A release that hashes more, or otherwise, takes the next
// version, and goes on computing this one for what is recorded under it, so that it
// does not outdate every upload at once.
const hashVersion = "1-"

// hashBytes are enough to tell contents apart, and few enough to be repeated in
// each object.
const hashBytes = 16

// ContentHash identifies what a claim is about: the connection, its account,
// and everything that is sent.
func ContentHash(connectionUID, accountID string, content ...string) string {
	h := sha256.New()
	for _, part := range append([]string{connectionUID, accountID}, content...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hashVersion + hex.EncodeToString(h.Sum(nil)[:hashBytes])
}
