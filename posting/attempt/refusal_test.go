// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// confirming returns the timing for a platform with an unreliable listing that lags ten seconds after a refused call.
func confirming() Timing {
	confirming := weak()
	confirming.ConfirmAfter = 10 * time.Second
	return confirming
}

// refusedAt returns a target whose call was refused one second after its claim.
func refusedAt(t *testing.T, class platforms.Class, retryAt time.Time) *v1alpha1.TargetStatus {
	t.Helper()
	return refusedOf(t, claimed(t), class, retryAt)
}

// refusedOf refuses the call of a claimed target one second after its claim.
func refusedOf(t *testing.T, target *v1alpha1.TargetStatus, class platforms.Class, retryAt time.Time) *v1alpha1.TargetStatus {
	t.Helper()
	r := refusal(class, "no")
	r.Err.RetryAt = retryAt
	must.Succeed(t, Record(target, "a1", r, 1, at(time.Second)))
	if !IsRefused(target.Attempt) {
		t.Fatalf("a refusal is a claim, and the attempt stays open: %+v", target.Attempt)
	}
	return target
}

func TestRefusalIsConfirmed(t *testing.T) {
	none := platforms.LookupResult{}
	for _, tt := range []struct {
		name    string
		reason  string
		class   platforms.Class
		retryAt time.Time
		found   platforms.LookupResult
		asked   time.Duration
		outcome v1alpha1.AttemptOutcome
		state   v1alpha1.TargetState
		waits   string
		next    *v1alpha1.Time
	}{
		{
			"found", "the platform published it and responded with an error", platforms.ClassPermanent,
			time.Time{},
			platforms.LookupResult{Matches: 1, ExternalID: "7"},
			13 * time.Second, v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "", nil,
		},
		{
			"found before the listing can be complete", "a match counts immediately", platforms.ClassRateLimited, at(5 * time.Minute),
			platforms.LookupResult{Matches: 1, ExternalID: "7"},
			2 * time.Second, v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "", nil,
		},
		{
			"missing permanently", "the rejection is not contradicted", platforms.ClassPermanent,
			time.Time{},
			none, 13 * time.Second, v1alpha1.OutcomeRefused, v1alpha1.TargetFailed, v1alpha1.ReasonRefused, nil,
		},
		{
			"missing, for the moment", "the pause counts from the refusal", platforms.ClassQuota, at(5 * time.Minute),
			none, 13 * time.Second, v1alpha1.OutcomeRefused, v1alpha1.TargetPending, v1alpha1.ReasonRateLimited, timePtr(5 * time.Minute),
		},
		{
			"missing, and the pause is over", "the next call may be made immediately", platforms.ClassTransient,
			time.Time{},
			none, 13 * time.Second, v1alpha1.OutcomeRefused, v1alpha1.TargetPending, v1alpha1.ReasonPlatformBusy, timePtr(13 * time.Second),
		},
		{
			"missing after the deadline", "the retry is too late", platforms.ClassTransient,
			time.Time{},
			none, 2 * time.Hour, v1alpha1.OutcomeRefused, v1alpha1.TargetFailed, v1alpha1.ReasonPlatformBusy, nil,
		},
		{
			"missing too early", "the listing may lag", platforms.ClassPermanent,
			time.Time{},
			none, 12 * time.Second, "", v1alpha1.TargetPending, v1alpha1.ReasonRefused, timePtr(13 * time.Second),
		},
		{
			"several", "a user can distinguish them", platforms.ClassPermanent,
			time.Time{},
			platforms.LookupResult{Matches: 2},
			13 * time.Second, v1alpha1.OutcomeUnknown, v1alpha1.TargetUndecided, v1alpha1.ReasonOutcomeUnknown, nil,
		},
		{
			"given up by the platform", "the state of the call is the latest information", platforms.ClassTransient,
			time.Time{},
			platforms.LookupResult{Refused: platforms.Errorf(platforms.ClassPermanent, "damaged")},
			2 * time.Second,
			v1alpha1.OutcomeRefused, v1alpha1.TargetFailed, v1alpha1.ReasonRefused, nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := refusedAt(t, tt.class, tt.retryAt)
			must.Succeed(t, RecordLookup(target, tt.found, confirming(), v1alpha1.OnUnknownRetry, 1, at(tt.asked)))
			if target.Attempt.Outcome != tt.outcome || target.State != tt.state || reasonOf(target) != tt.waits || !target.NextTryAt.Equal(tt.next) {
				t.Errorf("outcome %q, state %q, reason %q, next %v; want %q, %q, %q, %v (%s)",
					target.Attempt.Outcome, target.State, reasonOf(target), target.NextTryAt, tt.outcome, tt.state, tt.waits, tt.next, tt.reason)
			}
			if tooLate := tt.asked > time.Hour; tooLate && target.Blocked.Remedy != "post again" {
				t.Errorf("the remedy for a missed deadline is %q", target.Blocked.Remedy)
			}
			if closed := !IsOpen(target.Attempt); closed && target.Attempt.Refusal != nil {
				t.Errorf("a closed attempt waits for no confirmation: %+v", target.Attempt)
			}
		})
	}
}

func TestNextConfirmation(t *testing.T) {
	for _, tt := range []struct {
		name    string
		reason  string
		class   platforms.Class
		retryAt time.Time
		want    time.Duration
	}{
		{"permanent", "the listing is complete by then, by any clock", platforms.ClassPermanent, time.Time{}, 13 * time.Second},
		{"blocked", "users see the outcome before the hour has passed", platforms.ClassQuota, at(time.Hour), 13 * time.Second},
		{"too many calls", "a question is a call as well, and prolongs the limit", platforms.ClassRateLimited, at(5 * time.Minute), 5 * time.Minute},
		{"too many calls, for a moment", "the listing lags for longer", platforms.ClassRateLimited, at(3 * time.Second), 13 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			target.NextTryAt = timePtr(2 * time.Hour) // a lookup before the refusal was recorded
			target = refusedOf(t, target, tt.class, tt.retryAt)
			if got := NextLookup(target, confirming()); !got.Equal(at(tt.want)) {
				t.Errorf("the next lookup is at %s, want %s (%s)", got, at(tt.want), tt.reason)
			}
		})
	}
}

func TestUnconfirmableRefusal(t *testing.T) {
	none := time.Time{}
	for _, tt := range []struct {
		name    string
		reason  string
		class   platforms.Class
		retryAt time.Time
		asked   platforms.Class
		askAt   time.Time
		after   time.Duration
		state   v1alpha1.TargetState
		waits   string
		next    *v1alpha1.Time
	}{
		{
			"not yet", "the next lookup may succeed", platforms.ClassPermanent, none,
			platforms.ClassTransient, none, time.Minute, v1alpha1.TargetPending, v1alpha1.ReasonRefused, timePtr(119 * time.Second),
		},
		{
			"at the end of the time for lookups", "the last moment is part of the time", platforms.ClassPermanent, none,
			platforms.ClassTransient, none, time.Second + time.Hour, v1alpha1.TargetPending, v1alpha1.ReasonRefused, timePtr(time.Second + 65*time.Minute),
		},
		{
			"never", "the rejection is not contradicted", platforms.ClassPermanent, none,
			platforms.ClassTransient, none, 2 * time.Hour, v1alpha1.TargetFailed, v1alpha1.ReasonRefused, nil,
		},
		{
			"never, of a call that was to be made again", "the post may be published, and must not be sent again automatically", platforms.ClassTransient, none,
			platforms.ClassReconnect, none, 61 * time.Minute, v1alpha1.TargetFailed, v1alpha1.ReasonPlatformBusy, nil,
		},
		{
			"never, with a similar post in the listing", "a user can compare them", platforms.ClassPermanent, none,
			platforms.ClassUnknown, none, 2 * time.Hour, v1alpha1.TargetUndecided, v1alpha1.ReasonOutcomeUnknown, nil,
		},
		{
			"after the pause that was announced", "the first lookup follows the pause, and its time limit starts then", platforms.ClassRateLimited, at(90 * time.Minute),
			platforms.ClassTransient, none, 90 * time.Minute, v1alpha1.TargetPending, v1alpha1.ReasonRateLimited, timePtr(90*time.Minute + time.Second),
		},
		{
			"long after the pause", "lookups were tried for an hour", platforms.ClassRateLimited, at(90 * time.Minute),
			platforms.ClassTransient, none, 151 * time.Minute, v1alpha1.TargetFailed, v1alpha1.ReasonRateLimited, nil,
		},
		{
			"limited as well", "an announced end of the limit is worth waiting for", platforms.ClassPermanent, none,
			platforms.ClassRateLimited, at(2 * time.Hour), 61 * time.Minute, v1alpha1.TargetPending, v1alpha1.ReasonRefused, timePtr(2 * time.Hour),
		},
		{
			"limited beyond the deadline", "users see the failure", platforms.ClassPermanent, none,
			platforms.ClassRateLimited, at(4 * time.Hour), 61 * time.Minute, v1alpha1.TargetFailed, v1alpha1.ReasonRefused, nil,
		},
		{
			"refused as well", "a rejected lookup is not proof either", platforms.ClassTransient, none,
			platforms.ClassPermanent, none, 13 * time.Second, v1alpha1.TargetPending, v1alpha1.ReasonPlatformBusy, timePtr(24 * time.Second),
		},
		{
			"refused as well, before the end of a pause", "the call must wait for the end anyway", platforms.ClassQuota, at(50 * time.Minute),
			platforms.ClassPermanent, none, 13 * time.Second, v1alpha1.TargetPending, v1alpha1.ReasonRateLimited, timePtr(50 * time.Minute),
		},
		{
			"refused as well, with a time after the pause", "the platform named the time for lookups", platforms.ClassQuota, at(50 * time.Minute),
			platforms.ClassPermanent, at(70 * time.Minute), 13 * time.Second, v1alpha1.TargetPending, v1alpha1.ReasonRateLimited, timePtr(70 * time.Minute),
		},
		{
			"refused each time", "the call may be published, and must not be sent again automatically", platforms.ClassTransient, none,
			platforms.ClassPermanent, none, 2 * time.Minute, v1alpha1.TargetFailed, v1alpha1.ReasonPlatformBusy, nil,
		},
		{
			"refused each time, permanently", "lookups are not possible for this account", platforms.ClassPermanent, none,
			platforms.ClassPermanent, none, 2 * time.Minute, v1alpha1.TargetFailed, v1alpha1.ReasonRefused, nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			target.TryUntil = timePtr(3 * time.Hour)
			target = refusedOf(t, target, tt.class, tt.retryAt)
			failure := platforms.Errorf(tt.asked, "cannot be asked")
			failure.RetryAt = tt.askAt
			must.Succeed(t, RecordLookupFailure(target, failure, confirming(), v1alpha1.OnUnknownRetry, at(tt.after)))
			if target.State != tt.state || reasonOf(target) != tt.waits || !target.NextTryAt.Equal(tt.next) {
				t.Errorf("%s (%s), next %v: %q, want %s (%s), next %v (%s)",
					target.State, reasonOf(target), target.NextTryAt, problemOf(target), tt.state, tt.waits, tt.next, tt.reason)
			}
			if target.State == v1alpha1.TargetFailed && (target.Attempt.Refusal == nil || !target.Attempt.Refusal.Unconfirmed) {
				t.Errorf("an unconfirmed rejection must be recorded as such: %+v", target.Attempt)
			}
			if target.State == v1alpha1.TargetFailed && !strings.Contains(target.Blocked.Remedy, "check the account before you post again") {
				t.Errorf("the call may have published the post, and the remedy is %q", target.Blocked.Remedy)
			}
		})
	}
}

// TestRefusalOutlivesItsPause covers a post whose account is limited for an hour and whose listing is unavailable when
// the limit ends.
func TestRefusalOutlivesItsPause(t *testing.T) {
	target := claimed(t)
	target.TryUntil = timePtr(2 * time.Hour)
	target = refusedOf(t, target, platforms.ClassRateLimited, at(time.Hour))
	if first := NextLookup(target, confirming()); !first.Equal(at(time.Hour)) {
		t.Fatalf("the next lookup is at %s, but lookups would extend the limit", first)
	}
	must.Succeed(t, RecordLookupFailure(target, platforms.Errorf(platforms.ClassTransient, "away"), confirming(), v1alpha1.OnUnknownFail, at(time.Hour)))
	again := NextLookup(target, confirming())
	if !IsRefused(target.Attempt) || again.Before(at(time.Hour)) {
		t.Fatalf("the first lookup had no response: %+v, the next is at %s", target.Attempt, again)
	}
	must.Succeed(t, RecordLookup(target, platforms.LookupResult{Matches: 1, ExternalID: "7"}, confirming(), v1alpha1.OnUnknownFail, 1, again))
	if target.State != v1alpha1.TargetPosted || target.ExternalID != "7" {
		t.Errorf("the post was published anyway: %+v", target)
	}
}

func TestRefusalWithoutProofWaitsForTheListing(t *testing.T) {
	timing := confirming()
	timing.Lag = 5 * time.Minute
	for _, tt := range []struct {
		name   string
		reason string
		found  platforms.LookupResult
		open   bool
		next   *v1alpha1.Time
	}{
		{"a response about the call itself", "the upload session reports that it is incomplete", platforms.LookupResult{Proof: true}, false, nil},
		{"a response from the listing", "the video may be listed minutes later", platforms.LookupResult{}, true, timePtr(5*time.Minute + 3*time.Second)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := refusedAt(t, platforms.ClassPermanent, time.Time{})
			must.Succeed(t, RecordLookup(target, tt.found, timing, v1alpha1.OnUnknownFail, 1, at(13*time.Second)))
			if IsOpen(target.Attempt) != tt.open || !target.NextTryAt.Equal(tt.next) {
				t.Errorf("open %t, next %v; want %t, %v (%s)", IsOpen(target.Attempt), target.NextTryAt, tt.open, tt.next, tt.reason)
			}
		})
	}
}

func TestRefusedAndProvedUnpublished(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reason string
		class  platforms.Class
		open   bool
	}{
		{"for the moment", "the container was read after the rejection", platforms.ClassTransient, false},
		{"permanent", "the state may lag, and failed is final", platforms.ClassPermanent, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			r := refusal(tt.class, "no")
			r.Unpublished = true
			must.Succeed(t, Record(target, "a1", r, 1, at(time.Second)))
			if IsOpen(target.Attempt) != tt.open {
				t.Errorf("open %t, want %t (%s)", !tt.open, tt.open, tt.reason)
			}
			if !tt.open && (reasonOf(target) != v1alpha1.ReasonPlatformBusy || !target.NextTryAt.Equal(timePtr(2*time.Second))) {
				t.Errorf("reason %q, next %v: it must be retried after a pause (%s)", reasonOf(target), target.NextTryAt, tt.reason)
			}
		})
	}
}

func TestRefusalRecordedTwice(t *testing.T) {
	target := refusedAt(t, platforms.ClassPermanent, time.Time{})
	must.Succeed(t, Record(target, "a1", refusal(platforms.ClassPermanent, "no"), 1, at(time.Minute)))
	if !target.Attempt.EndedAt.Equal(timePtr(time.Second)) {
		t.Errorf("an equal result must not change the attempt: ended at %v", target.Attempt.EndedAt)
	}
	must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.Posted, ExternalID: "7"}, 1, at(time.Minute)))
	if target.State != v1alpha1.TargetPosted || target.ExternalID != "7" {
		t.Errorf("a user's id must be recorded: %+v", target)
	}
}

func TestRejectedPostThatIsDeleted(t *testing.T) {
	target := refusedAt(t, platforms.ClassPermanent, time.Time{})
	must.Succeed(t, Abandon(target, at(time.Minute)))
	if target.State != v1alpha1.TargetUndecided || target.Attempt.Outcome != v1alpha1.OutcomeUnknown {
		t.Errorf("%s (%s): a later object of the same name must know that it may be published", target.State, target.Attempt.Outcome)
	}
}

func TestSearchStartsAtFirstAttempt(t *testing.T) {
	t.Run("to a refused attempt", func(t *testing.T) {
		target := refusedAt(t, platforms.ClassTransient, time.Time{})
		confirmed(t, target, time.Minute)
		must.Succeed(t, Open(target, claim("a2"), at(5*time.Minute)))
		if got := SearchFrom(target.Attempt); !got.Equal(t0.Add(-searchMargin)) {
			t.Errorf("the search starts at %s, want the first attempt's start", got)
		}
	})
	t.Run("to an earlier object of the post", func(t *testing.T) {
		target := &v1alpha1.TargetStatus{State: v1alpha1.TargetPending}
		c := claim("a1")
		c.SentBefore = at(-time.Hour)
		must.Succeed(t, Open(target, c, t0))
		if !target.Attempt.SearchFrom.Equal(timePtr(-time.Hour)) {
			t.Errorf("the search starts at %v", target.Attempt.SearchFrom)
		}
	})
	t.Run("not beyond a day", func(t *testing.T) {
		target := &v1alpha1.TargetStatus{State: v1alpha1.TargetPending}
		c := claim("a1")
		c.SentBefore = at(-25 * time.Hour)
		if err := Open(target, c, t0); err != nil || target.Attempt.SearchFrom != nil {
			t.Errorf("%v: the search starts at %v", errors.Unwrap(err), target.Attempt.SearchFrom)
		}
	})
}
