// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestStates(t *testing.T) {
	for _, tt := range []struct {
		name, reason               string
		target                     *v1alpha1.TargetStatus
		posted, undecided, settled bool
	}{
		{"no entry", "the status has no entry", nil, false, false, false},
		{"pending", "the target is still tried", &v1alpha1.TargetStatus{State: v1alpha1.TargetPending}, false, false, false},
		{"withdrawn", "an edit may add the target again", &v1alpha1.TargetStatus{State: v1alpha1.TargetWithdrawn}, false, false, false},
		{"posted", "the target is published", &v1alpha1.TargetStatus{State: v1alpha1.TargetPosted}, true, false, true},
		{"failed", "the target is no longer sent", &v1alpha1.TargetStatus{State: v1alpha1.TargetFailed}, false, false, true},
		{"undecided", "the target is not sent before a user answers", &v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided}, false, true, true},
		{"posted by an earlier version", "the phase records it", &v1alpha1.TargetStatus{Phase: v1alpha1.PhasePosted}, true, false, true},
	} {
		if posted, undecided, settled := Posted(tt.target), Undecided(tt.target), Settled(tt.target); posted != tt.posted || undecided != tt.undecided || settled != tt.settled {
			t.Errorf("%s: posted %t, undecided %t, settled %t; want %t, %t, %t (%s)", tt.name, posted, undecided, settled, tt.posted, tt.undecided, tt.settled, tt.reason)
		}
	}
}

func TestIsArmed(t *testing.T) {
	for name, tt := range map[string]struct {
		reason  string
		attempt *v1alpha1.Attempt
		want    bool
	}{
		"no attempt":       {"the target was not claimed", nil, false},
		"outside a group":  {"its call was made after the claim", &v1alpha1.Attempt{}, false},
		"open, in a group": {"its call waits until the group is opened", &v1alpha1.Attempt{Group: "group"}, true},
		"taken back":       {"its outcome is known", &v1alpha1.Attempt{Group: "group", Outcome: v1alpha1.OutcomeNotSent}, false},
	} {
		if got := IsArmed(tt.attempt); got != tt.want {
			t.Errorf("%s: armed %t, want %t (%s)", name, got, tt.want, tt.reason)
		}
	}
}

func TestBlock(t *testing.T) {
	why := v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: "too many calls"}
	for _, tt := range []struct {
		reason string
		before *v1alpha1.Blocked
		news   bool
	}{
		{"the target did not wait", nil, true},
		{"the target now waits for another reason", &v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady}, true},
		{"the reason is the same", &v1alpha1.Blocked{Reason: why.Reason}, true},
		{"the target waits for the same reason", &why, false},
	} {
		target := &v1alpha1.TargetStatus{Blocked: tt.before, NextTryAt: timePtr(time.Minute)}
		if news := Block(target, why); news != tt.news {
			t.Errorf("%s: news %t, want %t", tt.reason, news, tt.news)
		}
		if diff := cmp.Diff(&v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: &why}, target); diff != "" {
			t.Errorf("%s: it waits without a time:\n%s", tt.reason, diff)
		}
		if !BlockedBy(target, why.Reason) || BlockedBy(target, v1alpha1.ReasonConnectionNotReady) {
			t.Errorf("%s: it must wait for %s only", tt.reason, why.Reason)
		}
	}
	if BlockedBy(&v1alpha1.TargetStatus{}, why.Reason) {
		t.Error("a target without a block counts as blocked")
	}
}

func TestReset(t *testing.T) {
	entry := func(state v1alpha1.TargetState) *v1alpha1.TargetStatus {
		return &v1alpha1.TargetStatus{State: state, Blocked: &v1alpha1.Blocked{Reason: "R"}, TryUntil: timePtr(0), NextTryAt: timePtr(0)}
	}
	for _, tt := range []struct {
		reason string
		state  v1alpha1.TargetState
		want   *v1alpha1.TargetStatus
	}{
		{"its reason for waiting belonged to the post before the edit", v1alpha1.TargetPending, &v1alpha1.TargetStatus{State: v1alpha1.TargetPending}},
		{"the edit that removed the target may be reverted", v1alpha1.TargetWithdrawn, &v1alpha1.TargetStatus{State: v1alpha1.TargetPending}},
		{"users have seen that it is not published", v1alpha1.TargetFailed, entry(v1alpha1.TargetFailed)},
		{"published targets remain published", v1alpha1.TargetPosted, entry(v1alpha1.TargetPosted)},
		{"an edit does not determine a call's outcome", v1alpha1.TargetUndecided, entry(v1alpha1.TargetUndecided)},
	} {
		target := entry(tt.state)
		Reset(target)
		if diff := cmp.Diff(tt.want, target); diff != "" {
			t.Errorf("%s:\n%s", tt.reason, diff)
		}
	}
}
