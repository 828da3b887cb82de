// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// consequence is what follows a call that published nothing.
type consequence struct {
	blocked v1alpha1.Blocked
	// retryAt is when the call is made again; zero if it is not.
	retryAt time.Time
}

// apply enters a consequence into a target without an open attempt.
func (c consequence) apply(t *v1alpha1.TargetStatus) {
	if c.retryAt.IsZero() {
		fail(t, c.blocked)
		return
	}
	Block(t, c.blocked)
	t.NextTryAt = v1alpha1.NewTimePtr(c.retryAt)
}

// ofRefusal returns what follows a refusal: another try after a pause, or none.
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

// nextTry returns the next attempt of a target after a pause, or when the platform
// said, or a failure with the platform's reason if that would be too late.
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

// applyRefusal enters what follows a refusal that is confirmed.
func applyRefusal(t *v1alpha1.TargetStatus, err *platforms.Error, wait time.Duration, now time.Time) {
	ofRefusal(t, err, wait, now).apply(t)
}

// scheduleRetry enters the next attempt of a target whose call published nothing.
func scheduleRetry(t *v1alpha1.TargetStatus, reason string, err *platforms.Error, wait time.Duration, now time.Time) {
	nextTry(t, reason, err, wait, now).apply(t)
}

// recordRefusal enters that the platform refused the call of an open attempt. The attempt
// stays open until the platform was asked whether it published all the same, unless it
// was asked already and the call is made again.
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
		// A question is a call as well, and calls while limited prolong a limit.
		t.NextTryAt = t.Attempt.Refusal.RetryAt
	}
	setBlocked(t, follows.blocked)
}

// IsRefused reports whether an attempt is open for nothing but the confirmation of a
// refusal.
func IsRefused(a *v1alpha1.Attempt) bool { return IsOpen(a) && a.Refusal != nil }

// confirmFrom returns from when on the platform is asked about a refused call. Another
// process may ask, whose clock is ahead.
func confirmFrom(a *v1alpha1.Attempt, timing Timing) time.Time {
	return callFinishedAt(a, timing).Add(timing.ConfirmAfter + timing.ClockMargin)
}

// listedFrom returns from when on the account's listing shows the post of a refused call,
// where the platform answers from that alone.
func listedFrom(a *v1alpha1.Attempt, timing Timing) time.Time {
	return callFinishedAt(a, timing).Add(max(timing.ConfirmAfter, timing.Lag) + timing.ClockMargin)
}

// recordConfirmation enters what a lookup found after a refusal. A post that is not found
// lets the refusal stand, also where a listing proves nothing: nothing speaks against it.
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

// confirmRetryWindow bounds how long a platform is asked again that refuses the question as it
// refused the call. It may refuse every question of this account, and people wait for the
// failure; but one such answer is no more than a claim either.
const confirmRetryWindow = time.Minute

// recordConfirmationFailure enters that a platform could not be asked about a call that it
// had refused. It is asked again for as long as after a lost answer, counted from the end of
// the pause that it announced. Then the call is not made again, for it may have published,
// and a person is asked where a listed post may be the one.
func recordConfirmationFailure(t *v1alpha1.TargetStatus, err *platforms.Error, timing Timing, now time.Time) {
	from, notBefore, patience := callFinishedAt(t.Attempt, timing), err.RetryAt, timing.LookupTimeout
	if at := t.Attempt.Refusal.RetryAt; at != nil && at.After(from) {
		from = at.Time
	}
	if err.Class == platforms.ClassPermanent {
		patience = min(patience, confirmRetryWindow)
		if now.Before(from) && from.After(notBefore) {
			notBefore = from
		}
	}
	announced := err.RetryAt.After(now) && inTime(t, err.RetryAt)
	switch isOver := now.Sub(from) > patience && !announced; {
	case isOver && err.Class == platforms.ClassUnknown:
		closeUnknown(t, v1alpha1.OnUnknownFail, now, "the platform refused it, and could not be asked whether it published it all the same: "+err.Error())
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

// refuseUnconfirmed closes an attempt as refused that may have published: the platform could
// not be asked. Its call is not made again.
func refuseUnconfirmed(t *v1alpha1.TargetStatus, now time.Time) {
	t.Attempt.Refusal.RetryAt = nil
	if t.Blocked != nil {
		t.Blocked.Remedy = cmp.Or(t.Blocked.Remedy, "look at the account before you post again: the platform could not be asked whether it published this one")
	}
	confirmRefusal(t, now)
	t.Attempt.Refusal = &v1alpha1.Refusal{Unconfirmed: true}
}

// confirmRefusal closes an attempt as refused.
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
