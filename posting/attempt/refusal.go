// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// consequence describes a target's state after a call that did not publish it.
type consequence struct {
	blocked v1alpha1.Blocked
	// retryAt is the time of the retry, or zero if there is none.
	retryAt time.Time
}

func (c consequence) apply(t *v1alpha1.TargetStatus) {
	if c.retryAt.IsZero() {
		fail(t, c.blocked)
		return
	}
	Block(t, c.blocked)
	t.NextTryAt = v1alpha1.NewTimePtr(c.retryAt)
}

func ofRefusal(t *v1alpha1.TargetStatus, err *platforms.Error, wait time.Duration, now time.Time) consequence {
	if err == nil {
		err = platforms.Errorf(platforms.ClassPermanent, "the platform refused the post without saying why")
	}
	switch err.Class {
	case platforms.ClassRateLimited, platforms.ClassQuota:
		return nextTry(t, v1alpha1.ReasonRateLimited, err, wait, now)
	case platforms.ClassRestricted:
		return nextTry(t, v1alpha1.ReasonAccountRestricted, err, wait, now)
	case platforms.ClassTransient:
		return nextTry(t, v1alpha1.ReasonPlatformBusy, err, wait, now)
	case platforms.ClassRefresh, platforms.ClassReconnect:
		return nextTry(t, v1alpha1.ReasonConnectionNotReady, err, wait, now)
	case platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown:
		return consequence{blocked: blockedBy(v1alpha1.ReasonRefused, err)}
	default:
		return consequence{blocked: blockedBy(v1alpha1.ReasonRefused, err)}
	}
}

// nextTry returns a retry after the backoff, or at the time that the platform announced. If that is past the deadline,
// it returns a failure with the platform's reason.
func nextTry(t *v1alpha1.TargetStatus, reason string, err *platforms.Error, wait time.Duration, now time.Time) consequence {
	if err == nil {
		err = platforms.Errorf(platforms.ClassTransient, "nothing was sent")
	}
	at := now.Add(wait)
	if err.RetryAt.After(now) {
		at = err.RetryAt
	}
	c := consequence{blocked: blockedBy(reason, err)}
	if inTime(t, at) {
		c.retryAt = at
	}
	return c
}

func applyRefusal(t *v1alpha1.TargetStatus, err *platforms.Error, wait time.Duration, now time.Time) {
	ofRefusal(t, err, wait, now).apply(t)
}

func scheduleRetry(t *v1alpha1.TargetStatus, reason string, err *platforms.Error, wait time.Duration, now time.Time) {
	nextTry(t, reason, err, wait, now).apply(t)
}

// recordRefusal records that an open attempt's call was refused. The attempt remains open until a lookup confirms the
// refusal, unless an earlier lookup has done so and the call will be repeated.
func recordRefusal(t *v1alpha1.TargetStatus, r *platforms.Result, now time.Time) {
	follows := ofRefusal(t, r.Err, backoff(tries(t)), now)
	if r.Unpublished && !follows.retryAt.IsZero() {
		t.Attempt.Outcome = v1alpha1.OutcomeRefused
		follows.apply(t)
		return
	}
	t.Attempt.EndedAt = v1alpha1.NewTimePtr(now)
	t.Attempt.Refusal = &v1alpha1.Refusal{}
	t.NextTryAt = nil
	if !follows.retryAt.IsZero() {
		t.Attempt.Refusal.RetryAt = v1alpha1.NewTimePtr(follows.retryAt)
	}
	if r.Err != nil && r.Err.Class == platforms.ClassRateLimited {
		// A lookup counts as a call, and calls prolong a rate limit.
		t.NextTryAt = t.Attempt.Refusal.RetryAt
	}
	setBlocked(t, follows.blocked)
}

// IsRefused reports whether an open attempt is only waiting for its refusal to be confirmed.
func IsRefused(a *v1alpha1.Attempt) bool { return IsOpen(a) && a.Refusal != nil }

// confirmFrom returns the earliest time to look up a refused call. It allows for a process whose clock is ahead.
func confirmFrom(a *v1alpha1.Attempt, timing Timing) time.Time {
	return callFinishedAt(a, timing).Add(timing.ConfirmAfter + timing.ClockMargin)
}

// listedFrom returns the time from which a platform that offers only listings is certain to list the post of a refused
// call.
func listedFrom(a *v1alpha1.Attempt, timing Timing) time.Time {
	return callFinishedAt(a, timing).Add(max(timing.ConfirmAfter, timing.Lag) + timing.ClockMargin)
}

// recordConfirmation records a lookup after a refusal. If it finds nothing, the refusal is confirmed, even if the
// listing is unreliable: there is no evidence against it.
func recordConfirmation(t *v1alpha1.TargetStatus, f platforms.LookupResult, timing Timing, now time.Time) {
	from := listedFrom(t.Attempt, timing)
	if f.Proof {
		from = confirmFrom(t.Attempt, timing)
	}
	switch {
	case f.Refused != nil:
		t.Attempt.Outcome, t.Attempt.Refusal = v1alpha1.OutcomeRefused, nil
		applyRefusal(t, f.Refused, backoff(tries(t)), now)
	case now.Before(from):
		t.NextTryAt = v1alpha1.NewTimePtr(from)
	default:
		confirmRefusal(t, now)
	}
}

// confirmRetryWindow limits the retries of lookups that the platform refuses like the call itself: it may refuse all
// lookups on this account, and the user is waiting. A single refused lookup, however, proves as little as the refused
// call.
const confirmRetryWindow = time.Minute

// recordConfirmationFailure records that looking up a refused call failed. Retries continue for as long as after a lost
// response, counted from the end of the announced pause. After that, the call is not repeated, because it may have been
// successful. An error with ClassUnknown means that a listed post may be the result, and makes the target undecided.
func recordConfirmationFailure(t *v1alpha1.TargetStatus, err *platforms.Error, timing Timing, now time.Time) {
	from, notBefore, timeout := callFinishedAt(t.Attempt, timing), err.RetryAt, timing.LookupTimeout
	if at := t.Attempt.Refusal.RetryAt; at != nil && at.After(from) {
		from = at.Time
	}
	if err.Class == platforms.ClassPermanent {
		timeout = min(timeout, confirmRetryWindow)
		if now.Before(from) && from.After(notBefore) {
			notBefore = from
		}
	}
	announced := err.RetryAt.After(now) && inTime(t, err.RetryAt)
	switch isOver := now.Sub(from) > timeout && !announced; {
	case isOver && err.Class == platforms.ClassUnknown && !timing.Idempotent:
		closeUnknown(t, v1alpha1.OnUnknownFail, now, "the platform refused it, and the lookup to confirm that failed: "+err.Error())
	case isOver:
		refuseUnconfirmed(t, now)
	default:
		since := callFinishedAt(t.Attempt, timing)
		if !now.Before(from) {
			since = from
		}
		scheduleLookup(t, since, notBefore, now)
	}
}

// refuseUnconfirmed closes an attempt as refused after its lookup failed. There is no retry, because the call may have
// published.
func refuseUnconfirmed(t *v1alpha1.TargetStatus, now time.Time) {
	t.Attempt.Refusal.RetryAt = nil
	if t.Blocked != nil {
		t.Blocked.Remedy = cmp.Or(t.Blocked.Remedy, "check the account before you post again: Herald could not look up whether this post was published")
	}
	confirmRefusal(t, now)
	t.Attempt.Refusal = &v1alpha1.Refusal{Unconfirmed: true}
}

func confirmRefusal(t *v1alpha1.TargetStatus, now time.Time) {
	follows := consequence{}
	if t.Blocked != nil {
		follows.blocked = *t.Blocked
	}
	if at := t.Attempt.Refusal.RetryAt; at != nil {
		if follows.retryAt = at.Time; now.After(at.Time) {
			follows.retryAt = now
		}
		if !inTime(t, follows.retryAt) {
			follows.retryAt = time.Time{}
			follows.blocked.Remedy = cmp.Or(follows.blocked.Remedy, "post again")
		}
	}
	t.Attempt.Outcome, t.Attempt.Refusal = v1alpha1.OutcomeRefused, nil
	follows.apply(t)
}
