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

// weak returns the timing for a platform whose listing is unreliable.
func weak() Timing {
	w := timing
	w.Authoritative = false
	return w
}

// doubted returns a target whose first call, claimed at t0, got no response and was not found by lookups. The post's
// policy is retry.
func doubted(t *testing.T) *v1alpha1.TargetStatus {
	t.Helper()
	target := claimed(t)
	target.Attempt.Lookups = requiredLookups - 1
	if err := RecordLookup(target, platforms.LookupResult{}, weak(), v1alpha1.OnUnknownRetry, 1, at(10*time.Minute)); err != nil || target.Attempt.Outcome != v1alpha1.OutcomeUnknown {
		t.Fatalf("%v: %+v", err, target.Attempt)
	}
	return target
}

// sentAgain returns a doubted target with an open second attempt.
func sentAgain(t *testing.T) *v1alpha1.TargetStatus {
	t.Helper()
	target := doubted(t)
	must.Succeed(t, Open(target, claim("a2"), at(11*time.Minute)))
	return target
}

func refusal(class platforms.Class, message string) platforms.Result {
	return platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(class, "%s", message)}
}

// confirmed records a lookup that finds nothing after a refusal.
func confirmed(t *testing.T, target *v1alpha1.TargetStatus, after time.Duration) {
	t.Helper()
	must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, weak(), v1alpha1.OnUnknownFail, 1, at(after)))
}

func TestFailureAfterAmbiguousCall(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reason string
		target func(*testing.T) *v1alpha1.TargetStatus
		do     func(*testing.T, *v1alpha1.TargetStatus)
		// hindered is the rest of the message, besides the doubt, or "".
		hindered string
		doubt    bool
		wants    string
	}{
		{
			"too late to send again", "the target would be sent after its deadline, so a user must answer", claimed,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				must.Succeed(t, RecordLookupFailure(target, platforms.Errorf(platforms.ClassTransient, "busy"), timing, v1alpha1.OnUnknownRetry, at(2*time.Hour)))
			}, "could not be looked up: busy", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"the retry is too late", "the retry pause ends after the deadline", doubtful,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				target.TryUntil = timePtr(10*time.Minute + time.Millisecond)
				must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, weak(), v1alpha1.OnUnknownRetry, 1, at(10*time.Minute)))
			}, "no proof on this platform", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"waited past its time", "the first call may be online", doubted,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				must.Succeed(t, Fail(target, v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady, Problem: "the connection is gone", Remedy: "post again"}))
			}, "the connection is gone", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"not prepared", "the first call may be online", doubted,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				must.Succeed(t, RecordNotPrepared(target, platforms.Errorf(platforms.ClassPermanent, "too large"), t0, at(11*time.Minute)))
			}, "too large", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"rejected permanently", "the second call was; the first may be published", sentAgain,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				must.Succeed(t, Record(target, "a2", refusal(platforms.ClassPermanent, "no"), 1, at(11*time.Minute)))
				confirmed(t, target, 12*time.Minute)
			}, "no", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"rejected until the deadline", "the second call was; the first may be published", sentAgain,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				r := refusal(platforms.ClassRateLimited, "limited")
				r.Err.RetryAt = at(3 * time.Hour)
				must.Succeed(t, Record(target, "a2", r, 1, at(11*time.Minute)))
				confirmed(t, target, 12*time.Minute)
			}, "limited", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"rejected temporarily, then permanently", "the third attempt remembers the first as well", sentAgain,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				must.Succeed(t, Record(target, "a2", refusal(platforms.ClassTransient, "busy"), 1, at(11*time.Minute)))
				confirmed(t, target, 12*time.Minute)
				must.Succeed(t, Open(target, claim("a3"), at(12*time.Minute)))
				must.Succeed(t, Record(target, "a3", refusal(platforms.ClassPermanent, "no"), 1, at(12*time.Minute)))
				confirmed(t, target, 13*time.Minute)
			}, "no", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"processing failed", "the accepted second call failed; the first may be published", sentAgain,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				must.Succeed(t, RecordLookup(target, platforms.LookupResult{Refused: platforms.Errorf(platforms.ClassPermanent, "no")}, weak(), v1alpha1.OnUnknownRetry, 1, at(time.Hour)))
			}, "no", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"absence proved for the second call only", "the first call remains unknown", sentAgain,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				target.Attempt.Lookups = requiredLookups - 1
				must.Succeed(t, RecordLookup(target, platforms.LookupResult{Proof: true}, weak(), v1alpha1.OnUnknownRetry, 1, at(2*time.Hour)))
			}, "did not publish", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"missing from a listing that is not authoritative", "both calls may be published", sentAgain,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				target.Attempt.Lookups = requiredLookups - 1
				must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, weak(), v1alpha1.OnUnknownFail, 1, at(2*time.Hour)))
			}, "no proof on this platform", true, v1alpha1.ReasonOutcomeUnknown,
		},
		{
			"missing from an authoritative listing", "the search covers the first call, so both are absent", sentAgain,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				target.Attempt.Lookups = requiredLookups - 1
				must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, timing, v1alpha1.OnUnknownRetry, 1, at(2*time.Hour)))
			}, "", false, v1alpha1.ReasonPlatformBusy,
		},
		{
			"an earlier one was absent, and this one refused", "the first call's absence was proved, so nothing is unknown", claimed,
			func(t *testing.T, target *v1alpha1.TargetStatus) {
				target.Attempt.Lookups = requiredLookups - 1
				must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, timing, v1alpha1.OnUnknownRetry, 1, at(10*time.Minute)))
				must.Succeed(t, Open(target, claim("a2"), at(11*time.Minute)))
				must.Succeed(t, Record(target, "a2", refusal(platforms.ClassPermanent, "no"), 1, at(11*time.Minute)))
				confirmed(t, target, 12*time.Minute)
			}, "", false, v1alpha1.ReasonRefused,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := tt.target(t)
			tt.do(t, target)
			state := v1alpha1.TargetFailed
			if tt.doubt {
				state = v1alpha1.TargetUndecided
			}
			if target.State != state || reasonOf(target) != tt.wants {
				t.Fatalf("%s (%s): %q, want %s (%s) (%s)", target.State, reasonOf(target), problemOf(target), state, tt.wants, tt.reason)
			}
			if !tt.doubt {
				return
			}
			if !strings.Contains(problemOf(target), tt.hindered) || !AmbiguousSince(target).Time.Equal(t0) {
				t.Errorf("the problem lacks %q, or the target is not ambiguous since the first call (%s): %q, %s", tt.hindered, tt.reason, problemOf(target), AmbiguousSince(target))
			}
			if target.Blocked.Remedy != "" || WillResend(target) {
				t.Errorf("a retry could publish twice, and is not made: %+v", target)
			}
			answerable(t, target)
		})
	}
}

// doubtful returns a target that the next failed lookup closes as unknown.
func doubtful(t *testing.T) *v1alpha1.TargetStatus {
	t.Helper()
	target := claimed(t)
	target.Attempt.Lookups = requiredLookups - 1
	return target
}

// answerable checks that a user's answer settles a target and does not change the outcome of a closed attempt.
func answerable(t *testing.T, target *v1alpha1.TargetStatus) {
	t.Helper()
	outcome := target.Attempt.Outcome
	is := func(got, answered v1alpha1.AttemptOutcome) bool {
		return got == outcome && outcome != v1alpha1.OutcomeUnknown || got == answered && outcome == v1alpha1.OutcomeUnknown
	}
	posted := target.DeepCopy()
	if err := Resolve(posted, Resolution{ExternalID: "7"}, 1, at(5*time.Hour), at(4*time.Hour)); err != nil || posted.State != v1alpha1.TargetPosted || posted.ExternalID != "7" {
		t.Errorf("posted: %v: %+v", err, posted)
	}
	if !is(posted.Attempt.Outcome, v1alpha1.OutcomePosted) {
		t.Errorf("posted: the attempt was %s and is %s", outcome, posted.Attempt.Outcome)
	}
	must.Succeed(t, Resolve(target, Resolution{}, 1, at(5*time.Hour), at(4*time.Hour)))
	if !is(target.Attempt.Outcome, v1alpha1.OutcomeNotSent) {
		t.Errorf("not-sent: the attempt was %s and is %s", outcome, target.Attempt.Outcome)
	}
	must.Succeed(t, Open(target, claim("a9"), at(4*time.Hour)))
	must.Succeed(t, Record(target, "a9", refusal(platforms.ClassPermanent, "no"), 1, at(4*time.Hour)))
	confirmed(t, target, 5*time.Hour)
	if reasonOf(target) != v1alpha1.ReasonRefused {
		t.Errorf("the user answered for earlier calls, but the target is %s: %s", reasonOf(target), problemOf(target))
	}
}

func TestAmbiguousCard(t *testing.T) {
	second := func(t *testing.T) *v1alpha1.TargetStatus {
		t.Helper()
		target := publishCards(t, 1)
		for i, id := range []string{"b1", "b2"} {
			c := claim(id)
			c.Card = 1
			must.Succeed(t, Open(target, c, at(time.Duration(i+1)*10*time.Minute)))
			if i == 0 {
				target.Attempt.Lookups = requiredLookups - 1
				must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, weak(), v1alpha1.OnUnknownRetry, 3, at(19*time.Minute)))
			}
		}
		return target
	}
	t.Run("continues after a user's answer", func(t *testing.T) {
		target := second(t)
		must.Succeed(t, Record(target, "b2", refusal(platforms.ClassPermanent, "no"), 3, at(21*time.Minute)))
		confirmed(t, target, 22*time.Minute)
		if reasonOf(target) != v1alpha1.ReasonOutcomeUnknown || target.State != v1alpha1.TargetUndecided || NextCard(target) != 1 || target.ExternalURL != "https://x/id0" {
			t.Fatalf("%s: %s", reasonOf(target), problemOf(target))
		}
		must.Succeed(t, Resolve(target, Resolution{ExternalID: "id1"}, 3, at(time.Hour), at(30*time.Minute)))
		if target.State != v1alpha1.TargetPending || NextCard(target) != 2 || target.Attempt.Outcome != v1alpha1.OutcomeRefused {
			t.Fatalf("%+v", target)
		}
		c := claim("c1")
		c.Card = 2
		must.Succeed(t, Open(target, c, at(30*time.Minute)))
		if target.Attempt.UnknownSince != nil || target.Attempt.SearchFrom != nil {
			t.Errorf("the third card inherits the second's unknown outcome: %+v", target.Attempt)
		}
	})
	t.Run("ends with the card", func(t *testing.T) {
		target := second(t)
		must.Succeed(t, Record(target, "b2", platforms.Result{Outcome: platforms.Posted, ExternalID: "id1"}, 3, at(21*time.Minute)))
		must.Succeed(t, Fail(target, v1alpha1.Blocked{Reason: v1alpha1.ReasonMissedSchedule, Problem: "too late"}))
		if reasonOf(target) != v1alpha1.ReasonMissedSchedule {
			t.Errorf("the second card is published; the third was never sent: %s", problemOf(target))
		}
	})
}

// TestAcceptedLate records that the platform accepted the post after another process has closed the attempt as
// unknown.
func TestAcceptedLate(t *testing.T) {
	taken := platforms.Result{Outcome: platforms.Accepted, OperationID: "p~v2.1"}
	closed := func(policy v1alpha1.UnknownOutcomePolicy) func(*testing.T) *v1alpha1.TargetStatus {
		return func(t *testing.T) *v1alpha1.TargetStatus {
			target := doubtful(t)
			must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, weak(), policy, 1, at(10*time.Minute)))
			return target
		}
	}
	for _, tt := range []struct {
		name, reason string
		target       func(*testing.T) *v1alpha1.TargetStatus
		result       platforms.Result
		want         error
	}{
		{"a user was asked", "the platform can look up the operation id", closed(v1alpha1.OnUnknownFail), taken, nil},
		{"to be retried", "the platform is processing the post, so it must not be retried", closed(v1alpha1.OnUnknownRetry), taken, nil},
		{"without an operation id", "the result has no new information", closed(v1alpha1.OnUnknownFail), platforms.Result{Outcome: platforms.Accepted}, ErrSuperseded},
		{"with an operation id that is too long", "the operation id cannot be stored", closed(v1alpha1.OnUnknownFail), platforms.Result{Outcome: platforms.Accepted, OperationID: strings.Repeat("p", 257)}, ErrSuperseded},
		{"already looked up by that id", "the attempt has been reopened before", func(t *testing.T) *v1alpha1.TargetStatus {
			target := closed(v1alpha1.OnUnknownFail)(t)
			target.Attempt.OperationID = taken.OperationID
			return target
		}, taken, ErrSuperseded},
		{"a user has answered", "the user declared the post not sent", func(t *testing.T) *v1alpha1.TargetStatus {
			target := closed(v1alpha1.OnUnknownFail)(t)
			must.Succeed(t, Resolve(target, Resolution{}, 1, at(time.Hour), at(11*time.Minute)))
			return target
		}, taken, ErrSuperseded},
		{"sent again", "the entry speaks of another call", sentAgain, taken, ErrSuperseded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := tt.target(t)
			before := target.DeepCopy()
			if err := Record(target, "a1", tt.result, 1, at(20*time.Minute)); !errors.Is(err, tt.want) {
				t.Fatalf("Record: %v, want %v (%s)", err, tt.want, tt.reason)
			}
			if tt.want != nil {
				if !v1alpha1.SemanticEqual(before, target) {
					t.Errorf("the entry changed (%s): %+v", tt.reason, target)
				}
				return
			}
			a := target.Attempt
			if !IsOpen(a) || a.OperationID != taken.OperationID || a.Lookups != 0 || target.State != v1alpha1.TargetPending || reasonOf(target) != "" {
				t.Errorf("the call must be looked up by its operation id (%s): %+v %+v", tt.reason, target, a)
			}
			if NextLookup(target, weak()).After(at(21 * time.Minute)) {
				t.Errorf("the next lookup is at %s", NextLookup(target, weak()))
			}
			if err := Open(target, claim("a2"), at(time.Hour)); !errors.Is(err, ErrOpen) {
				t.Errorf("opened again: %v (%s)", err, tt.reason)
			}
			must.Succeed(t, Record(target, "a1", taken, 1, at(21*time.Minute)))
		})
	}
}

func TestRecordIDs(t *testing.T) {
	unknown := func(t *testing.T) *v1alpha1.TargetStatus {
		target := doubtful(t)
		must.Succeed(t, RecordLookup(target, platforms.LookupResult{}, weak(), v1alpha1.OnUnknownFail, 1, at(10*time.Minute)))
		return target
	}
	posted := platforms.Result{Outcome: platforms.Posted, ExternalID: "7", ExternalURL: "u"}
	taken := platforms.Result{Outcome: platforms.Accepted, OperationID: "p~v2.1", Err: platforms.Errorf(platforms.ClassTransient, "it is processed")}
	for _, tt := range []struct {
		name, reason string
		target       func(*testing.T) *v1alpha1.TargetStatus
		id           string
		result       platforms.Result
		wants        bool
		outcome      v1alpha1.AttemptOutcome
		state        v1alpha1.TargetState
	}{
		{"published", "only the id", claimed, "a1", posted, true, v1alpha1.OutcomePosted, v1alpha1.TargetPosted},
		{"published, closed as unknown", "the late result provides the outcome", unknown, "a1", posted, true, v1alpha1.OutcomePosted, v1alpha1.TargetPosted},
		{"accepted", "only the operation id allows a lookup", claimed, "a1", taken, true, "", v1alpha1.TargetPending},
		{"accepted, closed as unknown", "the operation id allows a lookup", unknown, "a1", taken, true, "", v1alpha1.TargetPending},
		{"accepted, without an operation id", "the response contains no other information", claimed, "a1", platforms.Result{Outcome: platforms.Accepted}, false, "", v1alpha1.TargetPending},
		{"published without an id", "the response contains no other information", claimed, "a1", platforms.Result{Outcome: platforms.Posted}, false, "", v1alpha1.TargetPending},
		{"refused with an id", "a rejection has no operation", claimed, "a1", platforms.Result{Outcome: platforms.Refused, ExternalID: "7"}, false, "", v1alpha1.TargetPending},
		{"refused", "a lookup confirms it", claimed, "a1", refusal(platforms.ClassPermanent, "no"), false, "", v1alpha1.TargetPending},
		{"another attempt", "the attempt is not in this entry", claimed, "a0", posted, false, "", v1alpha1.TargetPending},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := tt.target(t)
			if got := RecordIDs(target, tt.id, tt.result, 1, at(20*time.Minute)); got != tt.wants {
				t.Errorf("RecordIDs = %v (%s)", got, tt.reason)
			}
			if target.Attempt.Outcome != tt.outcome || target.State != tt.state {
				t.Errorf("%s, %s (%s)", target.Attempt.Outcome, target.State, tt.reason)
			}
			if tt.wants && tt.result.Outcome == platforms.Accepted && (target.Attempt.OperationID != "p~v2.1" || target.Attempt.EndedAt == nil) {
				t.Errorf("%+v (%s)", target.Attempt, tt.reason)
			}
			if target.ExternalURL != "" || strings.Contains(problemOf(target), "it is processed") {
				t.Errorf("got more than the id: %+v", target)
			}
		})
	}
}
