// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// keyed is the timing of an idempotent platform.
var keyed = Timing{
	SendWindow: timing.SendWindow, CallTimeout: timing.CallTimeout, ClockMargin: timing.ClockMargin, LookupTimeout: timing.LookupTimeout, Idempotent: true,
}

// TestIdempotentLookups tests lookups of a call whose response was lost after a second, on an idempotent platform.
func TestIdempotentLookups(t *testing.T) {
	past := time.Second + keyed.CallTimeout + keyed.ClockMargin
	for _, tt := range []struct {
		name, reason string
		result       platforms.LookupResult
		err          *platforms.Error
		after        time.Duration
		state        v1alpha1.TargetState
		outcome      v1alpha1.AttemptOutcome
	}{
		{"found", "one read settles it", platforms.LookupResult{Matches: 1, ExternalID: "3k", Certain: true}, nil, 2 * time.Second, v1alpha1.TargetPosted, v1alpha1.OutcomePosted},
		{"absent while the call may be processed", "if the post were given up now, it could still appear", platforms.LookupResult{Proof: true}, nil, past - time.Millisecond, v1alpha1.TargetPending, ""},
		{"absent once", "a second lookup could not be more certain", platforms.LookupResult{Proof: true}, nil, past, v1alpha1.TargetPending, v1alpha1.OutcomeAbsent},
		{"no answer for longer than others are looked up", "a later lookup settles the call, without a user", platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, "no answer"), past + 2*keyed.LookupTimeout, v1alpha1.TargetPending, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := claimed(t)
			must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.Unknown}, 1, at(time.Second)))
			if tt.err != nil {
				must.Succeed(t, RecordLookupFailure(target, tt.err, keyed, v1alpha1.OnUnknownFail, at(tt.after)))
			} else {
				must.Succeed(t, RecordLookup(target, tt.result, keyed, v1alpha1.OnUnknownFail, 1, at(tt.after)))
			}
			if target.State != tt.state || target.Attempt.Outcome != tt.outcome {
				t.Errorf("%s: %s, %q; want %s, %q", tt.reason, target.State, target.Attempt.Outcome, tt.state, tt.outcome)
			}
			if IsOpen(target.Attempt) && (target.NextTryAt == nil || !target.NextTryAt.After(at(tt.after))) {
				t.Errorf("%s: the next lookup is at %v", tt.reason, target.NextTryAt)
			}
		})
	}
}

// TestIdempotentRefusal tests a refusal whose confirmation fails for so long that other platforms' posts would be left
// to a user.
func TestIdempotentRefusal(t *testing.T) {
	target := claimed(t)
	must.Succeed(t, Record(target, "a1", platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(platforms.ClassPermanent, "no")}, 1, at(time.Second)))
	failed := platforms.Errorf(platforms.ClassUnknown, "no answer")
	must.Succeed(t, RecordLookupFailure(target, failed, keyed, v1alpha1.OnUnknownFail, at(2*keyed.LookupTimeout)))
	if target.State != v1alpha1.TargetFailed || target.Attempt.Refusal == nil || !target.Attempt.Refusal.Unconfirmed {
		t.Errorf("%s, %+v; want a refusal that is not confirmed", target.State, target.Attempt)
	}
}
