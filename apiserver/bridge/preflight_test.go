// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/posting/plan"
)

// checkedAs returns an edit of a connection whose last check had the given result.
func checkedAs(status metav1.ConditionStatus, reason string) func(*v1alpha1.Connection) {
	return func(c *v1alpha1.Connection) {
		c.Status.LastProbedAt = v1alpha1.NewTimePtr(now)
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "it says so"}}
	}
}

// TestFindings verifies that a validation lists each problem of a post once, and what it costs.
func TestFindings(t *testing.T) {
	t.Parallel()
	inbox := saying("Hello", "tok")
	inbox.Targets[0].TikTok = &v1alpha1.TikTokOptions{Draft: true}
	connection := func(edit func(*v1alpha1.Connection)) func(*bridge.Service) {
		return func(s *bridge.Service) { edit(s.Connections.Get("", "x")) }
	}
	const reconnect, unavailable = "POSTING_READINESS_RECONNECT_REQUIRED ", "POSTING_READINESS_UNAVAILABLE "
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.PostSpec
		edit   func(*bridge.Service)
		want   []string
	}{
		"Unchecked":   {"the connection is new, and the request to create the post checks it", saying("Hello", "x"), nil, nil},
		"Ready":       {"the last check succeeded", saying("Hello", "x"), connection(checkedAs(metav1.ConditionTrue, "Ready")), nil},
		"Expired":     {"the account has to be connected again", saying("Hello", "x"), connection(checkedAs(metav1.ConditionFalse, v1alpha1.ReasonTokenExpired)), []string{reconnect}},
		"Unavailable": {"the platform did not respond to the last check", saying("Hello", "x"), connection(checkedAs(metav1.ConditionFalse, "Unavailable")), []string{unavailable}},
		"Disabled":    {"its last check does not matter", saying("Hello", "x"), connection(func(c *v1alpha1.Connection) { c.Spec.Disabled = true }), []string{reconnect}},
		"Inbox": {"TikTok accepts no more drafts", inbox, func(s *bridge.Service) {
			s.Quota = reading{newCounts(), fullUsage(plan.TikTokDrafts(s.Connections.Get("", "tok")))}
		}, []string{"VALIDATION_ERROR targets[0].tiktok_draft"}},
		"Options": {"options are checked twice, and reported once", saying("Hello!", "x", "tok"), nil, []string{
			"VALIDATION_ERROR targets[0].caption", "VALIDATION_ERROR targets[1].caption", "VALIDATION_ERROR targets[1].tiktok_privacy_level",
		}},
	} {
		s, _ := checkService()
		s.Quota = newCounts()
		if tc.edit != nil {
			tc.edit(s)
		}
		ctx, meter := limits.WithMeter(t.Context())
		meter.Parts(10 - len(tc.spec.Targets)) // ten cost a request
		got, err := s.ValidatePost(ctx, caller, bridge.CreatePost{Spec: tc.spec}, nil, 0)
		var found []string
		for _, f := range got.Findings {
			found = append(found, string(f.Code)+" "+f.Path)
		}
		if diff := cmp.Diff(tc.want, found); err != nil || diff != "" {
			t.Errorf("%s: %s: %v, -want +got\n%s%+v", name, tc.reason, err, diff, got.Findings)
		}
		if meter.Requests() != 1 {
			t.Errorf("%s: the targets cost %d requests, want 1", name, meter.Requests())
		}
	}
}
