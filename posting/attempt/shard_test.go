// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// TestClosedUntil tests, for the holder of version own, attempts that were claimed at 0.
func TestClosedUntil(t *testing.T) {
	over := timing.SendWindow + timing.CallTimeout + timing.ClockMargin
	for _, tt := range []struct {
		name, reason string
		attempt      *v1alpha1.Attempt
		after        time.Duration
		want         bool
	}{
		{"no attempt", "nothing was claimed", nil, 0, false},
		{"its own claim", "its gate already admits one call at a time", &v1alpha1.Attempt{Shard: "own"}, 0, false},
		{"another version's claim", "the other process may be about to call", &v1alpha1.Attempt{Shard: "other"}, 0, true},
		{"a claim without a version", "a process without shards made it", &v1alpha1.Attempt{}, 0, true},
		{"just before the call must be over", "the last call may have started at the end of the window", &v1alpha1.Attempt{Shard: "other"}, over - 1, true},
		{"once the call must be over", "the lookup may fail for an hour, and accounts do not wait for it", &v1alpha1.Attempt{Shard: "other"}, over, false},
		{"a recorded outcome", "the call has ended", &v1alpha1.Attempt{Shard: "other", Outcome: v1alpha1.OutcomeUnknown}, 0, false},
		{"a recorded end", "the call has ended, even if the clock that recorded it is ahead", &v1alpha1.Attempt{Shard: "other", EndedAt: v1alpha1.NewTimePtr(at(over))}, 0, false},
		{"an operation id", "the platform has responded and processes the post", &v1alpha1.Attempt{Shard: "other", OperationID: "7"}, 0, false},
		{"an unconfirmed refusal", "the platform has responded", &v1alpha1.Attempt{Shard: "other", Refusal: &v1alpha1.Refusal{}}, 0, false},
		{"an armed claim", "its group may be open", &v1alpha1.Attempt{Shard: "other", Group: "herald-group-00/7"}, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.attempt != nil {
				tt.attempt.StartedAt, tt.attempt.SendBefore = v1alpha1.NewTime(at(0)), v1alpha1.NewTime(at(timing.SendWindow))
			}
			if got := at(tt.after).Before(ClosedUntil(tt.attempt, "own", timing)); got != tt.want {
				t.Errorf("%s: got %t", tt.reason, got)
			}
		})
	}
}

// TestClaimNamesShard opens two attempts of a target under different versions of its shard.
func TestClaimNamesShard(t *testing.T) {
	target := &v1alpha1.TargetStatus{Platform: v1alpha1.PlatformX}
	must.Succeed(t, Open(target, Claim{ID: "a1", Shard: "first", Window: timing.SendWindow}, at(0)))
	if target.Attempt.Shard != "first" {
		t.Errorf("the claim names %q, so that the next holder cannot recognize it as another's", target.Attempt.Shard)
	}
	target.Attempt.Outcome = v1alpha1.OutcomeNotSent
	must.Succeed(t, Open(target, Claim{ID: "a2", Window: timing.SendWindow}, at(time.Minute)))
	if target.Attempt.Shard != "" {
		t.Errorf("the next claim, of a process without shards, still names %q", target.Attempt.Shard)
	}
}
