// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestRetriable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		target v1alpha1.TargetStatus
		want   bool
	}{
		"Failed":              {"the target is proven not to be published", v1alpha1.TargetStatus{State: v1alpha1.TargetFailed}, true},
		"Failed, and retried": {"two retries could both publish it", v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, RetriedBy: "again"}, false},
		"Posted":              {"the target is published", v1alpha1.TargetStatus{State: v1alpha1.TargetPosted}, false},
		"Pending":             {"the target may still be published", v1alpha1.TargetStatus{State: v1alpha1.TargetPending}, false},
	} {
		p := &v1alpha1.Post{Status: v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{tc.target}}}
		if got := Of(p).Retriable(0); got != tc.want {
			t.Errorf("%s: retriable is %v: %s", name, got, tc.reason)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	ended := func(outcome v1alpha1.AttemptOutcome) *v1alpha1.TargetStatus {
		return &v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, Attempt: &v1alpha1.Attempt{Outcome: outcome}}
	}
	notReady := &v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady}
	for name, tc := range map[string]struct {
		reason string
		target *v1alpha1.TargetStatus
		spec   v1alpha1.PostSpec
		want   v1alpha1.TargetMark
		absent bool
	}{
		"Unrecorded": {"no reason blocks it", nil, v1alpha1.PostSpec{}, v1alpha1.MarkNone, false},
		"Posted":     {"its phase shows it", &v1alpha1.TargetStatus{State: v1alpha1.TargetPosted, ExternalID: "1"}, v1alpha1.PostSpec{}, v1alpha1.MarkNone, false},
		"Undecided":  {"a user has to answer", &v1alpha1.TargetStatus{State: v1alpha1.TargetUndecided}, v1alpha1.PostSpec{}, v1alpha1.MarkUndecided, false},
		"Undecided, as an older version recorded it": {
			"phase and reason record it", &v1alpha1.TargetStatus{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonOutcomeUnknown}, v1alpha1.PostSpec{}, v1alpha1.MarkUndecided, false,
		},
		"Failed":  {"the target is not published, and not retried", &v1alpha1.TargetStatus{State: v1alpha1.TargetFailed}, v1alpha1.PostSpec{}, v1alpha1.MarkNone, true},
		"Refused": {"the platform did not publish it", ended(v1alpha1.OutcomeRefused), v1alpha1.PostSpec{}, v1alpha1.MarkNone, true},
		"Rejected by a platform whose lookup failed": {
			"the call may have published the target", &v1alpha1.TargetStatus{
				State: v1alpha1.TargetFailed, Attempt: &v1alpha1.Attempt{Outcome: v1alpha1.OutcomeRefused, Refusal: &v1alpha1.Refusal{Unconfirmed: true}},
			},
			v1alpha1.PostSpec{},
			v1alpha1.MarkNone, false,
		},
		"Failed with an unknown outcome": {"the call may have published the target", ended(v1alpha1.OutcomeUnknown), v1alpha1.PostSpec{}, v1alpha1.MarkNone, false},
		"Not sent":                       {"the call was not sent", ended(v1alpha1.OutcomeNotSent), v1alpha1.PostSpec{}, v1alpha1.MarkNone, true},
		"Absent":                         {"the listing proves that it is not published", ended(v1alpha1.OutcomeAbsent), v1alpha1.PostSpec{}, v1alpha1.MarkNone, true},
		"Failed with an ID":              {"the platform gave the ID to a published post", &v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, ExternalID: "1"}, v1alpha1.PostSpec{}, v1alpha1.MarkNone, false},
		"Failed after a published card":  {"part of the tree is published", &v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, ExternalID: "1", Cards: []v1alpha1.CardStatus{{}}}, v1alpha1.PostSpec{}, v1alpha1.MarkNone, false},
		"Failed for its connection":      {"the target is no longer retried", &v1alpha1.TargetStatus{State: v1alpha1.TargetFailed, Blocked: notReady}, v1alpha1.PostSpec{}, v1alpha1.MarkNone, true},
		"Connection not ready":           {"a user has to reconnect the account", &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: notReady}, v1alpha1.PostSpec{}, v1alpha1.MarkWaiting, false},
		"Account restricted": {
			"the platform has to lift it", &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: &v1alpha1.Blocked{Reason: v1alpha1.ReasonAccountRestricted}},
			v1alpha1.PostSpec{},
			v1alpha1.MarkWaiting, false,
		},
		"Rate limited": {
			"the target continues automatically", &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: &v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited}},
			v1alpha1.PostSpec{},
			v1alpha1.MarkNone, false,
		},
		"Draft": {"the draft is not due", &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: notReady}, v1alpha1.PostSpec{Draft: true}, v1alpha1.MarkNone, false},
		"Call open": {
			"the call's outcome comes first", &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: notReady, Attempt: &v1alpha1.Attempt{}},
			v1alpha1.PostSpec{},
			v1alpha1.MarkNone, false,
		},
		"Refused for its connection": {
			"the call has ended", &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, Blocked: notReady, Attempt: &v1alpha1.Attempt{Outcome: v1alpha1.OutcomeRefused}},
			v1alpha1.PostSpec{},
			v1alpha1.MarkWaiting, false,
		},
	} {
		p := &v1alpha1.Post{Spec: tc.spec}
		p.Spec.Targets = make([]v1alpha1.PostTarget, 2)
		if tc.target != nil {
			tc.target.Index = 1
			p.Status.Targets = []v1alpha1.TargetStatus{*tc.target}
		}
		if got := Of(p).Mark(1); got != tc.want {
			t.Errorf("%s: mark %d, want %d: %s", name, got, tc.want, tc.reason)
		}
		if got := Of(p).ProvenAbsent(1); got != tc.absent {
			t.Errorf("%s: proven absent is %v: %s", name, got, tc.reason)
		}
	}
}
