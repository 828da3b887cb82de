// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attempt is the write-ahead log of delivery. It decides when a platform call may be made, interprets the
// response, and resolves calls whose response was lost. The package is pure: it modifies only the entry that is passed
// in, which the caller stores.
//
// It keeps these invariants for each target:
//
//   - An attempt records at most one irrevocable call. Another call needs another attempt, with a higher number.
//   - A new attempt is opened only when the previous one is closed as refused, not sent or absent, or as unknown if
//     the post allows a resend.
//   - A refusal closes an attempt only after a lookup has confirmed that nothing was published, or has failed.
//   - An open attempt whose window is over is resolved by a lookup, never by a call.
//   - On an idempotent platform, an attempt is closed as unknown only if its post is being deleted.
//   - A known external ID is never replaced.
//   - An attempt closes its account for the holders of other versions of its shard until its call must be over.
//   - An attempt that names a group is sent only after its group was opened. It never gets another group.
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

// The reasons why an attempt cannot be opened or changed.
var (
	// ErrOpen: an earlier call may still take effect.
	ErrOpen = errors.New("an earlier attempt is still open")
	// ErrSettled: the target is not pending.
	ErrSettled = errors.New("the target is settled")
	// ErrSuperseded: the entry contains another attempt, or this attempt is closed.
	ErrSuperseded = errors.New("another attempt has superseded this one")
)

// Timing holds the protocol's time limits.
type Timing struct {
	// SendWindow is the maximum time between a claim and the start of its call.
	SendWindow time.Duration
	// CallTimeout limits how long a call may take.
	CallTimeout time.Duration
	// ClockMargin is the largest difference between the clocks of two managers, or of a manager and a platform.
	ClockMargin time.Duration
	// Lag is the maximum time until a listing shows a published post.
	Lag time.Duration
	// ConfirmAfter is the delay between a refused call and the lookup that confirms the refusal.
	ConfirmAfter time.Duration
	// LookupTimeout limits how long an attempt is looked up after its window. For an accepted post, this is at least a
	// day.
	LookupTimeout time.Duration
	// Authoritative means that a post that is still missing from the listing after Lag was not published.
	Authoritative bool
	// Idempotent means that a repeated call cannot publish twice, and that one lookup after the call proves absence; see
	// platforms.Capabilities.
	Idempotent bool
}

// IsOpen reports whether an attempt has no recorded outcome.
func IsOpen(a *v1alpha1.Attempt) bool { return a != nil && a.Outcome == "" }

// IsArmed reports whether an open attempt is waiting for its group, or has waited for it.
func IsArmed(a *v1alpha1.Attempt) bool { return IsOpen(a) && a.Group != "" }

// Claim describes a new attempt.
type Claim struct {
	// ID is the attempt's unique ID.
	ID string
	// ContentHash identifies the claimed content; see the ContentHash function.
	ContentHash string
	// AccountID is the platform's ID of the account that publishes.
	AccountID string
	// Checkpoint is the platform's reference to the prepared content. It may be empty.
	Checkpoint string
	// Group is the group that is opened before the call, or "" if the call follows its claim.
	Group string
	// Shard is the version of the shard that the claiming process holds, or "" if there is only one shard.
	Shard string
	// Window is the maximum time between the claim and the start of its call.
	Window time.Duration
	// SentBefore is the time when the first call for an earlier object of the post was claimed, or zero if there was none.
	SentBefore time.Time
	// Card is the index of the tree's next card, or 0 if the post is not a tree.
	Card int32
}

// NextCard returns the index of a tree's first unpublished card, or 0 if the post is not a tree.
func NextCard(t *v1alpha1.TargetStatus) int32 {
	if t == nil {
		return 0
	}
	return int32(len(t.Cards)) //nolint:gosec // a tree has at most 100 cards
}

// continuesTree reports whether the next call follows a published card. The previous attempt may have been for a
// different card, because a user may have resolved an earlier attempt as posted.
func continuesTree(t *v1alpha1.TargetStatus, c Claim) bool {
	return t.Attempt != nil && !IsOpen(t.Attempt) && t.Attempt.Card == c.Card-1 && NextCard(t) == c.Card
}

// Open claims a target's next call by adding a new attempt to its entry. Before making the call, the caller must store
// the entry with its original resourceVersion.
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
		Group:       c.Group,
		Shard:       c.Shard,
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

// searchBack limits how far back to search for calls whose response is known. Threads and Instagram containers and Page
// photos expire after a day, so older preparations can no longer become visible.
const searchBack = 24 * time.Hour

// firstSent returns the start of the earliest attempt, up to and including this one, whose call may have reached the
// platform. Refused calls count, because the platform may nevertheless have published the post.
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

func sentBefore(at, now time.Time) *v1alpha1.Time {
	if at.IsZero() || now.Sub(at) > searchBack {
		return nil
	}
	return v1alpha1.NewTimePtr(at)
}

// searchMargin is the maximum lag of a platform's clock behind the manager's clock. It is generous: older
// posts are ruled out by text and owner, whereas a search that starts too late would report a published post as absent.
const searchMargin = time.Minute

// SearchFrom returns the earliest time, by the platform's clock, when the attempt may have been published.
func SearchFrom(a *v1alpha1.Attempt) time.Time {
	from := a.StartedAt.Time
	if a.SearchFrom != nil {
		from = a.SearchFrom.Time
	}
	return from.Add(-searchMargin)
}

// SameAccount reports whether the attempt called this account. A lookup in another account does not prove absence.
func SameAccount(a *v1alpha1.Attempt, accountID string) bool {
	return a.AccountID == "" || a.AccountID == accountID
}

// Checkpoint returns an earlier attempt's checkpoint for the same content, or "".
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

// callFinishedAt returns a safe upper bound for when an attempt's call ended: the end that was observed or, failing
// that, the latest time when a process could still be making the call.
func callFinishedAt(a *v1alpha1.Attempt, timing Timing) time.Time {
	if a.EndedAt != nil {
		return a.EndedAt.Time
	}
	return a.SendBefore.Add(timing.CallTimeout + timing.ClockMargin)
}

// CallFinished reports whether an open attempt's call is certain to have ended.
func CallFinished(a *v1alpha1.Attempt, timing Timing, now time.Time) bool {
	return !now.Before(callFinishedAt(a, timing))
}

// proofFrom returns the earliest time when a lookup that finds nothing can prove absence. The last bytes of a call
// may have been sent just before it ended, so the platform may process them for another call timeout. The calling
// process recorded the end by its own clock, which may be behind that of the process doing the lookup. If no end was
// recorded, callFinishedAt already includes this margin.
func proofFrom(a *v1alpha1.Attempt, timing Timing) time.Time {
	from := callFinishedAt(a, timing).Add(timing.CallTimeout + timing.Lag)
	if a.EndedAt != nil {
		from = from.Add(timing.ClockMargin)
	}
	return from
}

// hashVersion is the prefix of each hash. A preparation with a different hash is repeated. A release that hashes other
// inputs must use the next version and still compute this one for recorded hashes, to keep existing uploads valid.
const hashVersion = "1-"

// hashBytes is long enough to distinguish contents, and short enough to be stored in every object.
const hashBytes = 16

// ContentHash identifies a claim's connection, account and content.
func ContentHash(connectionUID, accountID string, content ...string) string {
	h := sha256.New()
	for _, part := range append([]string{connectionUID, accountID}, content...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hashVersion + hex.EncodeToString(h.Sum(nil)[:hashBytes])
}
