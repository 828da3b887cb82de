// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

var (
	t0     = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	timing = Timing{
		SendWindow: 5 * time.Second, CallTimeout: 20 * time.Second, ClockMargin: 2 * time.Second,
		Lag: 10 * time.Second, LookupTimeout: time.Hour, Authoritative: true,
	}
)

func at(d time.Duration) time.Time           { return t0.Add(d) }
func timePtr(d time.Duration) *v1alpha1.Time { return v1alpha1.NewTimePtr(at(d)) }

func claim(id string) Claim {
	return Claim{ID: id, ContentHash: "hash", Checkpoint: "prepared", Window: timing.SendWindow}
}

// claimed returns a target with an open attempt, claimed at t0.
func claimed(t *testing.T) *v1alpha1.TargetStatus {
	t.Helper()
	target := &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, TryUntil: timePtr(time.Hour)}
	must.Succeed(t, Open(target, claim("a1"), t0))
	return target
}

// reasonOf returns a target's blocking reason, or "".
func reasonOf(t *v1alpha1.TargetStatus) string {
	if t.Blocked == nil {
		return ""
	}
	return t.Blocked.Reason
}

// problemOf returns a target's blocking problem, or "".
func problemOf(t *v1alpha1.TargetStatus) string {
	if t.Blocked == nil {
		return ""
	}
	return t.Blocked.Problem
}

func TestOpen(t *testing.T) {
	closed := func(outcome v1alpha1.AttemptOutcome, change ...func(*v1alpha1.Attempt)) *v1alpha1.Attempt {
		a := &v1alpha1.Attempt{Number: 3, ID: "a3", StartedAt: v1alpha1.NewTime(t0), Outcome: outcome}
		for _, c := range change {
			c(a)
		}
		return a
	}
	for _, tt := range []struct {
		name           string
		reason         string
		target         v1alpha1.TargetStatus
		wantErr        error
		wantNumber     int32
		wantSearchFrom *v1alpha1.Time
	}{
		{name: "first", reason: "the target has no earlier call", wantNumber: 1},
		{name: "open", reason: "the earlier call may have published", target: v1alpha1.TargetStatus{Attempt: closed("")}, wantErr: ErrOpen},
		{name: "posted", reason: "the target is published", target: v1alpha1.TargetStatus{Attempt: closed(v1alpha1.OutcomePosted)}, wantErr: ErrSettled},
		{name: "posted state", reason: "the state is recorded separately", target: v1alpha1.TargetStatus{State: v1alpha1.TargetPosted}, wantErr: ErrSettled},
		{name: "failed", reason: "only a user can reopen a failed target", target: v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, Attempt: closed(v1alpha1.OutcomeRefused)}, wantErr: ErrSettled},
		{name: "undecided", reason: "a user must answer first", target: v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided, Attempt: closed(v1alpha1.OutcomeUnknown)}, wantErr: ErrSettled},
		{name: "withdrawn", reason: "the owner removed it", target: v1alpha1.TargetStatus{State: v1alpha1.TargetWithdrawn}, wantErr: ErrSettled},
		{name: "posted by an earlier version", reason: "the earlier version recorded a phase, but no state", target: v1alpha1.TargetStatus{Phase: v1alpha1.PhasePosted}, wantErr: ErrSettled},
		{name: "failed by an earlier version", reason: "the phase is failed", target: v1alpha1.TargetStatus{Phase: v1alpha1.PhaseFailed, Attempt: closed(v1alpha1.OutcomeRefused)}, wantErr: ErrSettled},
		{name: "undecided by an earlier version", reason: "phase and reason record it", target: v1alpha1.TargetStatus{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonOutcomeUnknown, Attempt: closed(v1alpha1.OutcomeUnknown)}, wantErr: ErrSettled},
		{name: "cancelled by an earlier version", reason: "the owner cancelled it", target: v1alpha1.TargetStatus{Phase: v1alpha1.PhaseCancelled}, wantErr: ErrSettled},
		{name: "refused under an earlier version", reason: "the target is retried, whatever its phase", target: v1alpha1.TargetStatus{Phase: v1alpha1.PhaseProcessing, Reason: v1alpha1.ReasonPlatformBusy, Attempt: closed(v1alpha1.OutcomeRefused)}, wantNumber: 4, wantSearchFrom: timePtr(0)},
		{name: "pending", reason: "the phase is failed only while the post is invalid", target: v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Phase: v1alpha1.PhaseFailed}, wantNumber: 1},
		{name: "known id", reason: "an external id proves the publication", target: v1alpha1.TargetStatus{ExternalID: "9"}, wantErr: ErrSettled},
		{name: "refused", reason: "the platform may have published the post despite the rejection", target: v1alpha1.TargetStatus{Attempt: closed(v1alpha1.OutcomeRefused)}, wantNumber: 4, wantSearchFrom: timePtr(0)},
		{name: "refused long ago", reason: "content prepared that long ago can no longer be published", target: v1alpha1.TargetStatus{
			Attempt: closed(v1alpha1.OutcomeRefused, func(a *v1alpha1.Attempt) { a.StartedAt = v1alpha1.NewTime(at(-25 * time.Hour)) }),
		}, wantNumber: 4},
		{name: "refused a day ago", reason: "content prepared that day is about to expire", target: v1alpha1.TargetStatus{
			Attempt: closed(v1alpha1.OutcomeRefused, func(a *v1alpha1.Attempt) { a.StartedAt = v1alpha1.NewTime(at(time.Minute - 24*time.Hour)) }),
		}, wantNumber: 4, wantSearchFrom: timePtr(time.Minute - 24*time.Hour)},
		{name: "not sent", reason: "the call was not sent", target: v1alpha1.TargetStatus{Attempt: closed(v1alpha1.OutcomeNotSent)}, wantNumber: 4},
		{name: "refused after it waited", reason: "its reason for waiting is resolved", target: v1alpha1.TargetStatus{
			Attempt: closed(v1alpha1.OutcomeRefused), Blocked: &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlatformBusy}, NextTryAt: timePtr(0),
		}, wantNumber: 4, wantSearchFrom: timePtr(0)},
		{name: "refused after its answer was lost", reason: "its own call may have been received as well", target: v1alpha1.TargetStatus{
			Attempt: closed(v1alpha1.OutcomeRefused, func(a *v1alpha1.Attempt) { a.EndedAt = timePtr(time.Second) }),
		}, wantNumber: 4, wantSearchFrom: timePtr(0)},
		{name: "refused after it was looked up", reason: "its own call may have been received as well", target: v1alpha1.TargetStatus{
			Attempt: closed(v1alpha1.OutcomeRefused, func(a *v1alpha1.Attempt) { a.Lookups = 1 }),
		}, wantNumber: 4, wantSearchFrom: timePtr(0)},
		{name: "refused after an unclear one", reason: "the first call may yet be found", target: v1alpha1.TargetStatus{
			Attempt: closed(v1alpha1.OutcomeRefused, func(a *v1alpha1.Attempt) { a.SearchFrom = timePtr(-time.Hour) }),
		}, wantNumber: 4, wantSearchFrom: timePtr(-time.Hour)},
		{name: "absent", reason: "proved absent, but a late arrival must still be found", target: v1alpha1.TargetStatus{Attempt: closed(v1alpha1.OutcomeAbsent)}, wantNumber: 4, wantSearchFrom: timePtr(0)},
		{name: "unknown", reason: "the post allows another call, and the first may still be found", target: v1alpha1.TargetStatus{Attempt: closed(v1alpha1.OutcomeUnknown)}, wantNumber: 4, wantSearchFrom: timePtr(0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.target.DeepCopy()
			err := Open(&tt.target, claim("next"), at(time.Minute))
			if !errors.Is(err, tt.wantErr) {
				t.Fatalf("Open: %v, want %v (%s)", err, tt.wantErr, tt.reason)
			}
			if err != nil {
				if diff := cmp.Diff(before, &tt.target); diff != "" {
					t.Errorf("a refused claim changed the entry (%s):\n%s", tt.reason, diff)
				}
				return
			}
			a := tt.target.Attempt
			if tt.target.Blocked != nil || tt.target.NextTryAt != nil {
				t.Errorf("the target still waits: %+v", tt.target)
			}
			if a.ContentHash != "hash" || a.Checkpoint != "prepared" {
				t.Errorf("attempt %+v, want the claimed content", a)
			}
			if a.Number != tt.wantNumber || a.ID != "next" || !IsOpen(a) || !a.SendBefore.Time.Equal(at(time.Minute+timing.SendWindow)) {
				t.Errorf("attempt %+v, want number %d, open, to be sent within the window (%s)", a, tt.wantNumber, tt.reason)
			}
			if !a.SearchFrom.Equal(tt.wantSearchFrom) {
				t.Errorf("lookFrom %v, want %v (%s)", a.SearchFrom, tt.wantSearchFrom, tt.reason)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	refusal := func(class platforms.Class, retryAt time.Time) platforms.Result {
		return platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{Class: class, Problem: "no", RetryAt: retryAt}}
	}
	for _, tt := range []struct {
		name        string
		reason      string
		result      platforms.Result
		wantOutcome v1alpha1.AttemptOutcome
		wantState   v1alpha1.TargetState
		wantReason  string
		wantNext    *v1alpha1.Time
	}{
		{"posted", "the platform confirmed", platforms.Result{Outcome: platforms.Posted, ExternalID: "7", ExternalURL: "u"}, v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "", nil},
		{"permanent", "repeating it unchanged is useless", refusal(platforms.ClassPermanent, time.Time{}), "", v1alpha1.TargetPending, v1alpha1.ReasonRefused, nil},
		{"of an unknown class", "every rejection is recorded", refusal("new", time.Time{}), "", v1alpha1.TargetPending, v1alpha1.ReasonRefused, nil},
		{"rate limited", "the platform named the time", refusal(platforms.ClassRateLimited, at(10*time.Minute)), "", v1alpha1.TargetPending, v1alpha1.ReasonRateLimited, timePtr(10 * time.Minute)},
		{"rate limited for too long", "the deadline passes before", refusal(platforms.ClassRateLimited, at(2*time.Hour)), "", v1alpha1.TargetPending, v1alpha1.ReasonRateLimited, nil},
		{"quota", "a cap is a wait", refusal(platforms.ClassQuota, time.Time{}), "", v1alpha1.TargetPending, v1alpha1.ReasonRateLimited, nil},
		{"token expired", "the connection must be checked first", refusal(platforms.ClassRefresh, time.Time{}), "", v1alpha1.TargetPending, v1alpha1.ReasonConnectionNotReady, nil},
		{"token revoked", "a user may reconnect in time", refusal(platforms.ClassReconnect, time.Time{}), "", v1alpha1.TargetPending, v1alpha1.ReasonConnectionNotReady, nil},
		{"busy", "a refusal for the moment", refusal(platforms.ClassTransient, time.Time{}), "", v1alpha1.TargetPending, v1alpha1.ReasonPlatformBusy, nil},
		{"no reason", "a rejection without a message is recorded too", platforms.Result{Outcome: platforms.Refused}, "", v1alpha1.TargetPending, v1alpha1.ReasonRefused, nil},
		{"not sent", "no connection was obtained", platforms.Result{Outcome: platforms.NotSent}, v1alpha1.OutcomeNotSent, v1alpha1.TargetPending, v1alpha1.ReasonPlatformBusy, timePtr(2 * time.Second)},
		{"unknown", "the post may be published, so the attempt stays open", platforms.Result{Outcome: platforms.Unknown}, "", v1alpha1.TargetPending, v1alpha1.ReasonSettling, timePtr(2 * time.Second)},
		{"accepted", "the platform is processing it: the attempt stays open", platforms.Result{Outcome: platforms.Accepted, OperationID: "p~v2.1"}, "", v1alpha1.TargetPending, "", timePtr(2 * time.Second)},
		{"accepted with a message", "the platform described its progress", platforms.Result{Outcome: platforms.Accepted, OperationID: "p~v2.1", Err: platforms.Errorf(platforms.ClassTransient, "it is processed")}, "", v1alpha1.TargetPending, v1alpha1.ReasonProcessing, timePtr(2 * time.Second)},
		{"accepted without an operation id", "the result has no id for a lookup", platforms.Result{Outcome: platforms.Accepted}, "", v1alpha1.TargetPending, v1alpha1.ReasonSettling, timePtr(2 * time.Second)},
		{"nonsense", "an invalid outcome counts as unknown", platforms.Result{Outcome: "later"}, "", v1alpha1.TargetPending, v1alpha1.ReasonSettling, timePtr(2 * time.Second)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			must.Succeed(t, Record(target, "a1", tt.result, 1, at(time.Second)))
			if target.Attempt.Outcome != tt.wantOutcome || target.State != tt.wantState || reasonOf(target) != tt.wantReason || !target.NextTryAt.Equal(tt.wantNext) {
				t.Errorf("outcome %q state %q reason %q next %v, want %q %q %q %v (%s)",
					target.Attempt.Outcome, target.State, reasonOf(target), target.NextTryAt, tt.wantOutcome, tt.wantState, tt.wantReason, tt.wantNext, tt.reason)
			}
			if tt.result.Outcome == platforms.Posted && (target.ExternalID != "7" || target.ExternalURL != "u" || !target.PostedAt.Equal(timePtr(time.Second)) || len(target.Cards) > 0) {
				t.Errorf("the publication is not recorded: %+v", target)
			}
		})
	}
}

func TestRecordOperationID(t *testing.T) {
	for name, tc := range map[string]struct{ reason, operationID, want string }{
		"taken":              {"the id is used for the lookup", "p~v2.1", "p~v2.1"},
		"the maximum length": {"the schema's limit is inclusive", strings.Repeat("p", 256), strings.Repeat("p", 256)},
		"too long":           {"the schema would reject the status", strings.Repeat("p", 257), ""},
	} {
		t.Run(name, func(t *testing.T) {
			target := claimed(t)
			if err := Record(target, "a1", platforms.Result{Outcome: platforms.Accepted, OperationID: tc.operationID}, 1, at(time.Second)); err != nil {
				t.Fatal(err)
			}
			if a := target.Attempt; !IsOpen(a) || a.OperationID != tc.want {
				t.Errorf("%s: got %+v", tc.reason, a)
			}
		})
	}
}

func TestRecordPosted(t *testing.T) {
	for _, tt := range []struct {
		reason string
		result platforms.Result
		want   v1alpha1.TargetStatus
	}{
		{"the platform reported the time", platforms.Result{Outcome: platforms.Posted, ExternalID: "7", PostedAt: at(time.Minute)}, v1alpha1.TargetStatus{ExternalID: "7", PostedAt: timePtr(time.Minute)}},
		{"the platform did not report the time", platforms.Result{Outcome: platforms.Posted, ExternalID: "7"}, v1alpha1.TargetStatus{ExternalID: "7", PostedAt: timePtr(time.Hour)}},
		{"the post is published anyway", platforms.Result{Outcome: platforms.Posted}, v1alpha1.TargetStatus{PostedAt: timePtr(time.Hour)}},
	} {
		target := claimed(t)
		// Earlier doubts are resolved.
		must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.Unknown}, 1, at(time.Second)))
		must.Succeed(t, Record(target, "a1", tt.result, 1, at(time.Hour)))
		tt.want.State = v1alpha1.TargetPosted
		target.Attempt = nil
		if diff := cmp.Diff(&tt.want, target); diff != "" {
			t.Errorf("%s:\n%s", tt.reason, diff)
		}
	}
}

// TestRecordWithheld checks that a call that was withheld leaves no trace of the failed lookups before it.
func TestRecordWithheld(t *testing.T) {
	target := claimed(t)
	target.Blocked, target.NextTryAt = &v1alpha1.Blocked{Reason: v1alpha1.ReasonSettling, Problem: "busy"}, timePtr(time.Minute)
	must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.NotSent, Withheld: true}, 1, at(time.Second)))
	if target.Attempt.Outcome != v1alpha1.OutcomeNotSent || target.Blocked != nil || target.NextTryAt != nil {
		t.Errorf("%s until %s for %+v; want a target that may be claimed at once, since nothing was sent", target.Attempt.Outcome, target.NextTryAt, target.Blocked)
	}
}

// TestRecordDuplicate records a call that the platform refused as a duplicate, so the previous call may have published.
func TestRecordDuplicate(t *testing.T) {
	for class, want := range map[platforms.Class]bool{platforms.ClassDuplicate: true, platforms.ClassUnknown: false} {
		target := claimed(t)
		if err := Record(target, "a1", platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(class, "no")}, 1, at(time.Second)); err != nil {
			t.Fatal(err)
		}
		if target.Attempt.Duplicate != want {
			t.Errorf("%s: duplicate %t, want %t", class, !want, want)
		}
	}
}

func TestPause(t *testing.T) {
	for attempts, want := range map[int32]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		if got := backoff(attempts); got != want {
			t.Errorf("after %d attempts it pauses for %s, want %s", attempts, got, want)
		}
	}
}

func TestDeadline(t *testing.T) {
	for _, tt := range []struct {
		reason string
		target v1alpha1.TargetStatus
		want   time.Time
	}{
		{"a target that is not due does not have a deadline", v1alpha1.TargetStatus{}, time.Time{}},
		{"no pause was announced", v1alpha1.TargetStatus{TryUntil: timePtr(time.Hour)}, at(time.Hour)},
		{"an announced pause does not count", v1alpha1.TargetStatus{TryUntil: timePtr(2 * time.Hour), InitialDeadline: timePtr(time.Hour)}, at(time.Hour)},
	} {
		if got := Deadline(&tt.target); !got.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", tt.reason, got, tt.want)
		}
	}
}

func TestRecordIsConditional(t *testing.T) {
	posted := platforms.Result{Outcome: platforms.Posted, ExternalID: "7"}
	for _, tt := range []struct {
		name   string
		reason string
		id     string
		before func(*v1alpha1.TargetStatus)
		want   error
	}{
		{"another attempt", "the result belongs to a record that was replaced", "a0", func(*v1alpha1.TargetStatus) {}, ErrSuperseded},
		{"closed otherwise", "the attempt was closed meanwhile", "a1", func(t *v1alpha1.TargetStatus) { t.Attempt.Outcome = v1alpha1.OutcomeAbsent }, ErrSuperseded},
		{"no attempt", "the post was recreated", "a1", func(t *v1alpha1.TargetStatus) { t.Attempt = nil }, ErrSuperseded},
		{"closed as absent", "a proof of absence is final", "a1", func(t *v1alpha1.TargetStatus) { t.Attempt.Outcome = v1alpha1.OutcomeAbsent }, ErrSuperseded},
		{"repeated", "the write was stored, but its response was lost", "a1", func(t *v1alpha1.TargetStatus) { _ = Record(t, "a1", posted, 1, t0) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			tt.before(target)
			before := target.DeepCopy()
			if err := Record(target, tt.id, posted, 1, at(time.Second)); !errors.Is(err, tt.want) {
				t.Fatalf("Record: %v, want %v (%s)", err, tt.want, tt.reason)
			}
			if diff := cmp.Diff(before, target); diff != "" {
				t.Errorf("the entry changed (%s):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestNotPrepared(t *testing.T) {
	refusal := func(class platforms.Class, retryAt time.Time) *platforms.Error {
		return &platforms.Error{Class: class, Problem: "no", RetryAt: retryAt}
	}
	for _, tt := range []struct {
		name       string
		reason     string
		err        *platforms.Error
		tried      time.Duration
		before     func(*v1alpha1.TargetStatus)
		wantErr    error
		wantState  v1alpha1.TargetState
		wantReason string
		wantNext   *v1alpha1.Time
	}{
		{name: "busy at first", reason: "an outage may end within a second", err: refusal(platforms.ClassTransient, time.Time{}), wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonPlatformBusy, wantNext: timePtr(time.Second)},
		{name: "busy for a while", reason: "a long outage may continue", err: refusal(platforms.ClassTransient, time.Time{}), tried: time.Minute, wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonPlatformBusy, wantNext: timePtr(2 * time.Minute)},
		{name: "busy for long", reason: "the pause is bounded", err: refusal(platforms.ClassTransient, time.Time{}), tried: 20 * time.Minute, wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonPlatformBusy, wantNext: timePtr(25 * time.Minute)},
		{name: "answer lost", reason: "the step is not public, so it may be repeated", err: refusal(platforms.ClassUnknown, time.Time{}), wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonPlatformBusy, wantNext: timePtr(time.Second)},
		{name: "limited", reason: "the platform named the time", err: refusal(platforms.ClassRateLimited, at(10*time.Minute)), wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonRateLimited, wantNext: timePtr(10 * time.Minute)},
		{name: "limited for too long", reason: "the deadline passes before", err: refusal(platforms.ClassQuota, at(2*time.Hour)), wantState: v1alpha1.TargetFailed, wantReason: v1alpha1.ReasonRateLimited},
		{name: "token revoked", reason: "a user may reconnect in time", err: refusal(platforms.ClassReconnect, time.Time{}), wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonConnectionNotReady, wantNext: timePtr(time.Second)},
		{name: "content refused", reason: "repeating it unchanged is useless", err: refusal(platforms.ClassPermanent, time.Time{}), wantState: v1alpha1.TargetFailed, wantReason: v1alpha1.ReasonRefused},
		{name: "an attempt is open", reason: "its call may have taken effect", err: refusal(platforms.ClassPermanent, time.Time{}), before: func(t *v1alpha1.TargetStatus) { t.Attempt = &v1alpha1.Attempt{ID: "a1"} }, wantErr: ErrOpen},
		{name: "posted", reason: "a late error has no effect", err: refusal(platforms.ClassPermanent, time.Time{}), before: func(t *v1alpha1.TargetStatus) { t.State = v1alpha1.TargetPosted }, wantErr: ErrSettled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, TryUntil: timePtr(time.Hour)}
			if tt.before != nil {
				tt.before(target)
			}
			before := target.DeepCopy()
			if err := RecordNotPrepared(target, tt.err, t0, at(tt.tried)); !errors.Is(err, tt.wantErr) {
				t.Fatalf("NotPrepared: %v, want %v (%s)", err, tt.wantErr, tt.reason)
			}
			if tt.wantErr != nil {
				if diff := cmp.Diff(before, target); diff != "" {
					t.Errorf("the entry changed (%s):\n%s", tt.reason, diff)
				}
				return
			}
			if target.Attempt != nil || target.State != tt.wantState || reasonOf(target) != tt.wantReason || !target.NextTryAt.Equal(tt.wantNext) {
				t.Errorf("attempt %v state %q reason %q next %v, want none, %q %q %v (%s)",
					target.Attempt, target.State, reasonOf(target), target.NextTryAt, tt.wantState, tt.wantReason, tt.wantNext, tt.reason)
			}
		})
	}
}

func TestCheckpoint(t *testing.T) {
	made := &v1alpha1.Attempt{ContentHash: "hash", Checkpoint: "c1", Outcome: v1alpha1.OutcomeNotSent}
	for _, tt := range []struct {
		name    string
		reason  string
		attempt *v1alpha1.Attempt
		hash    string
		want    string
	}{
		{"same content", "the checkpoint can be used again", made, "hash", "c1"},
		{"other content", "content prepared for another version must not be published", made, "other", ""},
		{"no attempt", "the target has no preparation", nil, "hash", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Checkpoint(tt.attempt, tt.hash); got != tt.want {
				t.Errorf("got %q, want %q (%s)", got, tt.want, tt.reason)
			}
		})
	}
}

func TestRecordEndsUnknown(t *testing.T) {
	target := claimed(t)
	closeUnknown(target, v1alpha1.OnUnknownFail, t0, "no proof")
	if err := Record(target, "a1", platforms.Result{Outcome: platforms.Posted, ExternalID: "7"}, 1, at(time.Second)); err != nil ||
		target.State != v1alpha1.TargetPosted || target.ExternalID != "7" {
		t.Errorf("a late response must settle the attempt: %v %+v", err, target)
	}
	target = claimed(t)
	closeUnknown(target, v1alpha1.OnUnknownFail, t0, "no proof")
	if err := Record(target, "a1", platforms.Result{Outcome: platforms.Refused}, 1, at(time.Second)); !errors.Is(err, ErrSuperseded) {
		t.Errorf("only a publication is worth it: %v", err)
	}
}

func TestTextsFitTheSchema(t *testing.T) {
	long := &platforms.Error{Class: platforms.ClassPermanent, Problem: strings.Repeat("é", 5000), Remedy: strings.Repeat("é", 5000)}
	target := claimed(t)
	must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.Refused, Err: long}, 1, t0))
	if n, m := len([]rune(target.Blocked.Problem)), len([]rune(target.Blocked.Remedy)); n != 1024 || m != 512 {
		t.Errorf("a problem of %d characters and a remedy of %d exceed the schema's 1024 and 512, which would reject the status", n, m)
	}
}

func TestSameAccount(t *testing.T) {
	target := &v1alpha1.TargetStatus{}
	must.Succeed(t, Open(target, Claim{ID: "a1", AccountID: "42", Window: time.Second}, t0))
	if !SameAccount(target.Attempt, "42") || SameAccount(target.Attempt, "43") {
		t.Error("only the called account can look up the call")
	}
	later := &v1alpha1.Attempt{StartedAt: v1alpha1.NewTime(at(time.Hour)), SearchFrom: timePtr(0)}
	if SearchFrom(later) != SearchFrom(target.Attempt) {
		t.Errorf("a look from %s misses the post of an earlier attempt", SearchFrom(later))
	}
	if from := SearchFrom(target.Attempt); !from.Before(t0.Add(-30 * time.Second)) {
		t.Errorf("a lookup from %s on misses a post if the platform's clock is half a minute behind", t0.Sub(from))
	}
}

func TestProofWaitsForTheCallersClock(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reason string
		// ended means that the call was seen to end, a second after its claim.
		ended   bool
		after   time.Duration
		lookups int32
	}{
		{"just past the lag", "the platform may still be working on the call", true, time.Second + timing.Lag + time.Second, 0},
		{"past the call's limit and the lag", "the reader's clock may be ahead of the caller's", true, time.Second + timing.CallTimeout + timing.Lag, 0},
		{"past the margin of clocks as well", "an authoritative listing counts now", true, time.Second + timing.CallTimeout + timing.Lag + timing.ClockMargin, 1},
		{
			"end unknown, just past the lag", "its last bytes may have been sent as late as the call's timeout, and the platform may need time", false,
			timing.SendWindow + timing.CallTimeout + timing.ClockMargin + timing.Lag, 0,
		},
		{
			"end unknown, past twice the call's limit", "an authoritative listing counts now", false,
			timing.SendWindow + 2*timing.CallTimeout + timing.ClockMargin + timing.Lag, 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			if tt.ended {
				must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.Unknown}, 1, at(time.Second)))
			}
			if err := RecordLookup(target, platforms.LookupResult{}, timing, v1alpha1.OnUnknownFail, 1, at(tt.after)); err != nil || target.Attempt.Lookups != tt.lookups {
				t.Errorf("%d lookups count, want %d (%s) %v", target.Attempt.Lookups, tt.lookups, tt.reason, err)
			}
		})
	}
}

func TestMaySend(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  time.Duration
		closed bool
		want   bool
	}{
		{name: "immediately", want: true},
		{name: "just inside the window", after: timing.SendWindow - time.Millisecond, want: true},
		{name: "at the end of the window", after: timing.SendWindow},
		{name: "long after, as after a suspended machine", after: time.Hour},
		{name: "closed meanwhile", closed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			if tt.closed {
				target.Attempt.Outcome = v1alpha1.OutcomeNotSent
			}
			if got := MaySend(target.Attempt, at(tt.after)); got != tt.want {
				t.Errorf("MaySend = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNextLookup(t *testing.T) {
	quiet := timing.SendWindow + timing.CallTimeout + timing.ClockMargin
	for _, tt := range []struct {
		name   string
		reason string
		change func(*v1alpha1.TargetStatus)
		want   time.Time
	}{
		{"process died", "another process may still be in the middle of the call", func(*v1alpha1.TargetStatus) {}, at(quiet)},
		{"call seen to end", "no call is in progress", func(t *v1alpha1.TargetStatus) {
			_ = Record(t, "a1", platforms.Result{Outcome: platforms.Unknown}, 1, at(time.Second))
		}, at(2 * time.Second)},
		{"asked to wait", "the platform limits lookups", func(t *v1alpha1.TargetStatus) { t.NextTryAt = timePtr(time.Hour) }, at(time.Hour)},
		{"an earlier wait", "the call must have ended", func(t *v1alpha1.TargetStatus) { t.NextTryAt = timePtr(time.Second) }, at(quiet)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			tt.change(target)
			if got := NextLookup(target, timing); !got.Equal(tt.want) {
				t.Errorf("NextLookup = %v, want %v (%s)", got.Sub(t0), tt.want.Sub(t0), tt.reason)
			}
		})
	}
}

func TestRecordLookup(t *testing.T) {
	found := platforms.LookupResult{Matches: 1, ExternalID: "7", ExternalURL: "u", PostedAt: at(time.Second)}
	quiet := timing.SendWindow + timing.CallTimeout + timing.ClockMargin
	past := quiet + timing.CallTimeout + timing.Lag
	weak := timing
	weak.Authoritative = false
	for _, tt := range []struct {
		name        string
		reason      string
		result      platforms.LookupResult
		lookups     int32
		duplicate   bool
		after       time.Duration
		timing      Timing
		policy      v1alpha1.UnknownOutcomePolicy
		wantOutcome v1alpha1.AttemptOutcome
		wantState   v1alpha1.TargetState
		wantReason  string
		wantNext    *v1alpha1.Time
	}{
		{
			name: "found", reason: "the post is published", result: found, after: quiet, timing: timing,
			wantOutcome: v1alpha1.OutcomePosted, wantState: v1alpha1.TargetPosted, wantReason: "",
		},
		{
			name: "found after a duplicate refusal", reason: "the duplicate rejection was correct", result: found, duplicate: true, after: quiet, timing: timing,
			wantOutcome: v1alpha1.OutcomePosted, wantState: v1alpha1.TargetPosted, wantReason: "",
		},
		{
			name: "two fit", reason: "the match is ambiguous", result: platforms.LookupResult{Matches: 2}, after: quiet, timing: timing, policy: v1alpha1.OnUnknownRetry,
			wantOutcome: v1alpha1.OutcomeUnknown, wantState: v1alpha1.TargetUndecided, wantReason: v1alpha1.ReasonOutcomeUnknown,
		},
		{
			name: "missing within the lag", reason: "a delayed listing is not evidence", after: quiet + time.Second, timing: timing,
			wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonSettling, wantNext: timePtr(quiet + 2*time.Second),
		},
		{
			name: "missing shortly before the lag is over", reason: "the next lookup may count", after: past - time.Second, timing: timing,
			wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonSettling, wantNext: timePtr(past),
		},
		{
			name: "missing once past the lag", reason: "one lookup is not enough", after: past, timing: timing,
			wantState: v1alpha1.TargetPending, wantReason: "", wantNext: timePtr(past + timing.Lag/2),
		},
		{
			name: "missing twice past the lag", reason: "a second miss is proof where the listing is authoritative", lookups: 1, after: past + time.Minute, timing: timing,
			wantOutcome: v1alpha1.OutcomeAbsent, wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonPlatformBusy, wantNext: timePtr(past + time.Minute + time.Second),
		},
		{
			name: "missing twice, duplicate", reason: "another call would be rejected again", lookups: 1, duplicate: true, after: past + time.Minute, timing: timing,
			wantOutcome: v1alpha1.OutcomeRefused, wantState: v1alpha1.TargetFailed, wantReason: v1alpha1.ReasonRefused,
		},
		{
			name: "missing twice, listing not authoritative", reason: "without proof, a user must answer", lookups: 1, after: past + time.Minute, timing: weak, policy: v1alpha1.OnUnknownFail,
			wantOutcome: v1alpha1.OutcomeUnknown, wantState: v1alpha1.TargetUndecided, wantReason: v1alpha1.ReasonOutcomeUnknown,
		},
		{
			name: "missing twice, listing not authoritative, proof", reason: "the platform returned this call's result", result: platforms.LookupResult{Proof: true}, lookups: 1, after: past + time.Minute, timing: weak,
			wantOutcome: v1alpha1.OutcomeAbsent, wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonPlatformBusy, wantNext: timePtr(past + time.Minute + time.Second),
		},
		{
			name: "missing once, proof", reason: "the proof may be delayed as well: one lookup is not enough", result: platforms.LookupResult{Proof: true}, after: past, timing: weak,
			wantState: v1alpha1.TargetPending, wantReason: "", wantNext: timePtr(past + timing.Lag/2),
		},
		{
			name: "missing within the lag, proof", reason: "a call may still be in progress", result: platforms.LookupResult{Proof: true}, after: quiet + time.Second, timing: weak,
			wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonSettling, wantNext: timePtr(quiet + 2*time.Second),
		},
		{
			name: "processing failed", reason: "the platform accepted the call, and then failed permanently", result: platforms.LookupResult{Refused: platforms.Errorf(platforms.ClassPermanent, "no")}, after: time.Second, timing: weak,
			wantOutcome: v1alpha1.OutcomeRefused, wantState: v1alpha1.TargetFailed, wantReason: v1alpha1.ReasonRefused,
		},
		{
			name: "given up by the platform for now", reason: "another call may succeed", result: platforms.LookupResult{Refused: platforms.Errorf(platforms.ClassTransient, "no")}, after: time.Second, timing: weak,
			wantOutcome: v1alpha1.OutcomeRefused, wantState: v1alpha1.TargetPending, wantReason: v1alpha1.ReasonPlatformBusy, wantNext: timePtr(2 * time.Second),
		},
		{
			name: "missing twice, not authoritative, retry", reason: "the owner prefers twice to never", lookups: 1, after: past + time.Minute, timing: weak, policy: v1alpha1.OnUnknownRetry,
			wantOutcome: v1alpha1.OutcomeUnknown, wantState: v1alpha1.TargetPending, wantReason: "", wantNext: timePtr(past + time.Minute + time.Second),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			target.Attempt.Lookups, target.Attempt.Duplicate = tt.lookups, tt.duplicate
			must.Succeed(t, RecordLookup(target, tt.result, tt.timing, tt.policy, 1, at(tt.after)))
			if target.Attempt.Outcome != tt.wantOutcome || target.State != tt.wantState || reasonOf(target) != tt.wantReason || !target.NextTryAt.Equal(tt.wantNext) {
				t.Errorf("outcome %q state %q reason %q next %v, want %q %q %q %v (%s)",
					target.Attempt.Outcome, target.State, reasonOf(target), target.NextTryAt, tt.wantOutcome, tt.wantState, tt.wantReason, tt.wantNext, tt.reason)
			}
			if resends := tt.wantOutcome == v1alpha1.OutcomeUnknown && tt.policy == v1alpha1.OnUnknownRetry && tt.result.Matches == 0; WillResend(target) != resends {
				t.Errorf("WillResend = %t (%s)", !resends, tt.reason)
			}
		})
	}
}

// TestFailedLookupOfProcessing checks lookups that fail while the platform is processing an accepted post.
func TestFailedLookupOfProcessing(t *testing.T) {
	target := claimed(t)
	must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.Accepted, OperationID: "p~v2.1"}, 1, at(time.Second)))
	if err := RecordLookupFailure(target, platforms.Errorf(platforms.ClassTransient, "it is processed"), timing, v1alpha1.OnUnknownFail, at(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	if !IsOpen(target.Attempt) || reasonOf(target) != v1alpha1.ReasonProcessing || problemOf(target) != "it is processed" || !target.NextTryAt.Equal(timePtr(9*time.Second)) {
		t.Errorf("the target must be processing, with doubling pauses between lookups: %+v", target)
	}
	for _, tt := range []struct {
		reason string
		after  time.Duration
		open   bool
	}{
		{"the platform accepted the post, so the result will follow", 5*time.Second + timing.LookupTimeout, true},
		{"the platform may work for a day", time.Second + 24*time.Hour, true},
		{"an unfinished call needs a user's answer, whatever the policy: the post is not sent again while the platform is processing it", 25 * time.Hour, false},
	} {
		if err := RecordLookupFailure(target, platforms.Errorf(platforms.ClassTransient, "it is processed"), timing, v1alpha1.OnUnknownRetry, at(tt.after)); err != nil {
			t.Fatal(err)
		}
		if IsOpen(target.Attempt) != tt.open || (reasonOf(target) == v1alpha1.ReasonOutcomeUnknown) == tt.open {
			t.Errorf("%s: got %+v", tt.reason, target)
		}
	}
	if got, want := problemOf(target), "the platform accepted it and did not report its outcome in time: it is processed"; got != want {
		t.Errorf("the message must not promise anything: got %q, want %q", got, want)
	}
}

func TestRecordLookupFailure(t *testing.T) {
	target := claimed(t)
	err := platforms.Errorf(platforms.ClassTransient, "busy")
	if e := RecordLookupFailure(target, err, timing, v1alpha1.OnUnknownFail, at(time.Minute)); e != nil || !IsOpen(target.Attempt) || target.NextTryAt == nil {
		t.Fatalf("a look that failed must leave the attempt open and plan another: %v %+v", e, target)
	}
	if reasonOf(target) != v1alpha1.ReasonSettling || problemOf(target) != "the response was lost, and it cannot be looked up yet: busy" {
		t.Errorf("people read %s: %s", reasonOf(target), problemOf(target))
	}
	last := timing.SendWindow + timing.CallTimeout + timing.ClockMargin + timing.LookupTimeout
	if e := RecordLookupFailure(target, err, timing, v1alpha1.OnUnknownFail, at(last)); e != nil || !IsOpen(target.Attempt) {
		t.Fatalf("lookups must continue until the deadline: %v %+v", e, target)
	}
	if e := RecordLookupFailure(target, err, timing, v1alpha1.OnUnknownFail, at(2*time.Hour)); e != nil || reasonOf(target) != v1alpha1.ReasonOutcomeUnknown {
		t.Fatalf("after the deadline, a user must answer: %v %+v", e, target)
	}
	if e := RecordLookupFailure(target, err, timing, v1alpha1.OnUnknownFail, at(2*time.Hour)); !errors.Is(e, ErrSettled) {
		t.Fatalf("a settled attempt must not be looked up: %v", e)
	}
}

func TestResolutions(t *testing.T) {
	for _, tt := range []struct {
		value   string
		want    []Resolution
		wantErr bool
	}{
		{value: "0=posted:199", want: []Resolution{{Index: 0, ExternalID: "199"}}},
		{value: "1=not-sent, 0=posted:a:b", want: []Resolution{{Index: 1}, {Index: 0, ExternalID: "a:b"}}},
		{value: "", wantErr: true},
		{value: "0=posted:", wantErr: true},
		{value: "0=maybe", wantErr: true},
		{value: "-1=not-sent", wantErr: true},
		{value: "x=not-sent", wantErr: true},
		{value: "0=not-sent,", wantErr: true},
		{value: "0=posted:v_pub_url~v2.7-x_Y", want: []Resolution{{Index: 0, ExternalID: "v_pub_url~v2.7-x_Y"}}},
		{value: "0=posted:<id>", wantErr: true},
		{value: "0=posted:ID", wantErr: true},
		{value: "0=posted:" + strings.Repeat("1", 257), wantErr: true},
		{value: "0=posted:" + strings.Repeat("1", 256), want: []Resolution{{Index: 0, ExternalID: strings.Repeat("1", 256)}}},
		{value: "0=posted:09AZaz", want: []Resolution{{Index: 0, ExternalID: "09AZaz"}}},
	} {
		t.Run(tt.value, func(t *testing.T) {
			got, err := ParseResolutions(tt.value)
			if (err != nil) != tt.wantErr {
				t.Fatalf("error %v, want one: %v", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDeclare(t *testing.T) {
	doubtful := func() *v1alpha1.TargetStatus {
		target := claimed(t)
		closeUnknown(target, v1alpha1.OnUnknownFail, t0, "no proof")
		return target
	}
	target := doubtful()
	if err := Resolve(target, Resolution{ExternalID: "7"}, 1, at(time.Hour), t0); err != nil || target.State != v1alpha1.TargetPosted || target.ExternalID != "7" {
		t.Errorf("posted: %v %+v", err, target)
	}
	target = doubtful()
	target.NextTryAt = timePtr(time.Minute)
	if err := Resolve(target, Resolution{}, 1, at(2*time.Hour), t0); err != nil || target.State != v1alpha1.TargetPending {
		t.Errorf("not-sent: %v %+v", err, target)
	}
	if target.NextTryAt != nil || !target.TryUntil.Equal(timePtr(2*time.Hour)) {
		t.Errorf("not-sent: it must be retried immediately, until the new deadline: %+v", target)
	}
	if err := Open(target, claim("a2"), t0); err != nil || target.Attempt.Number != 2 {
		t.Errorf("after not-sent, the target may be claimed again: %v %+v", err, target.Attempt)
	}
	restored := &v1alpha1.TargetStatus{State: v1alpha1.TargetPending}
	if err := Fail(restored, v1alpha1.Blocked{Reason: v1alpha1.ReasonOutcomeUnknown, Problem: "it seems to be a copy"}); err != nil || restored.State != v1alpha1.TargetUndecided {
		t.Errorf("a copy from a backup without an attempt: %v %+v", err, restored)
	}
	if err := Resolve(restored, Resolution{ExternalID: "7"}, 1, at(time.Hour), t0); err != nil || restored.State != v1alpha1.TargetPosted || restored.Attempt == nil || restored.Attempt.Number != 1 {
		t.Errorf("a copy from a backup was posted: %v %+v", err, restored)
	}
	if err := Resolve(claimed(t), Resolution{}, 1, at(time.Hour), t0); err == nil {
		t.Error("an answer for a settled attempt must be rejected")
	}
}

// TestInvariants checks random histories of a target: no second call is allowed as long as the first may have
// published.
func TestInvariants(t *testing.T) {
	for seed := range uint64(20000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		walk(t, rng, seed)
	}
}

func walk(t *testing.T, rng *rand.Rand, seed uint64) {
	t.Helper()
	target := &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, TryUntil: timePtr(24 * time.Hour)}
	now := t0
	published, closedWithProof, number := "", true, int32(0)
	for step := range 12 {
		now = now.Add(time.Duration(rng.IntN(60)) * time.Second)
		switch rng.IntN(4) {
		case 0:
			err := Open(target, claim(fmt.Sprintf("a%d", step)), now)
			if err == nil && (!closedWithProof || published != "") {
				t.Fatalf("seed %d: a new attempt was opened although the last one may have published: %+v", seed, target)
			}
			if err == nil {
				if target.Attempt.Number != number+1 {
					t.Fatalf("seed %d: number %d after %d", seed, target.Attempt.Number, number)
				}
				number, closedWithProof = target.Attempt.Number, false
			}
		case 1:
			if target.Attempt == nil {
				continue
			}
			outcome := []platforms.Outcome{platforms.Posted, platforms.Refused, platforms.NotSent, platforms.Unknown, platforms.Accepted}[rng.IntN(5)]
			open := IsOpen(target.Attempt)
			err := Record(target, target.Attempt.ID, platforms.Result{
				Outcome: outcome, ExternalID: "id", Err: platforms.Errorf(platforms.ClassTransient, "busy"),
			}, 1, now)
			if err == nil && open {
				closedWithProof = outcome == platforms.Posted || outcome == platforms.NotSent
			}
		case 2:
			if !IsOpen(target.Attempt) {
				continue
			}
			result := platforms.LookupResult{Matches: rng.IntN(2), ExternalID: "id"}
			lookups := target.Attempt.Lookups
			must.Succeed(t, RecordLookup(target, result, timing, v1alpha1.OnUnknownFail, 1, now))
			if target.Attempt.Outcome == v1alpha1.OutcomeAbsent && (lookups < requiredLookups-1 || now.Before(callFinishedAt(target.Attempt, timing).Add(timing.CallTimeout+timing.Lag))) {
				t.Fatalf("seed %d: absent without two lookups past the lag: %+v", seed, target)
			}
			closedWithProof = !IsOpen(target.Attempt)
		case 3:
			if target.Attempt != nil && MaySend(target.Attempt, now) && !IsOpen(target.Attempt) {
				t.Fatalf("seed %d: a closed attempt may be sent: %+v", seed, target)
			}
		}
		if published != "" && target.ExternalID != published {
			t.Fatalf("seed %d: the external id %q was replaced by %q", seed, published, target.ExternalID)
		}
		published = target.ExternalID
	}
}
