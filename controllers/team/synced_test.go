// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
)

// A synced team is synced again once anything may have changed.
func TestSynced(t *testing.T) {
	began := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	acme := func(change func(*v1alpha1.Team)) *v1alpha1.Team {
		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "1", Generation: 1}}
		change(team)
		return team
	}
	same := func(*v1alpha1.Team) {}
	tell := func(name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
	for name, tc := range map[string]struct {
		reason string
		// during happens during the sync, and after happens after it.
		during, after func(s *syncTracker)
		team          *v1alpha1.Team
		later         time.Duration
		holds         bool
	}{
		"nothing":        {"the object is unchanged", nil, nil, acme(same), time.Minute, true},
		"another team":   {"the change was in another namespace", nil, func(s *syncTracker) { s.recordChange(tell("beta")) }, acme(same), time.Minute, true},
		"a binding":      {"the binding may have been removed", nil, func(s *syncTracker) { s.recordChange(tell("acme")) }, acme(same), time.Minute, false},
		"meanwhile":      {"the check may have missed the change", func(s *syncTracker) { s.recordChange(tell("acme")) }, nil, acme(same), time.Minute, false},
		"the spec":       {"the budget may have changed", nil, nil, acme(func(t *v1alpha1.Team) { t.Generation = 2 }), time.Minute, false},
		"another object": {"the team was recreated", nil, nil, acme(func(t *v1alpha1.Team) { t.UID = "2" }), time.Minute, false},
		"for long":       {"a watch may have missed an event", nil, nil, acme(same), syncEvery, false},
		"gone":           {"the record was deleted", nil, func(s *syncTracker) { s.forget("acme") }, acme(same), time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			var s syncTracker
			if s.isSynced(tc.team, began) {
				t.Fatal("the team has not been read")
			}
			changes := s.start("acme")
			if tc.during != nil {
				tc.during(&s)
			}
			s.markSynced(acme(same), changes, began)
			if tc.after != nil {
				tc.after(&s)
			}
			if holds := s.isSynced(tc.team, began.Add(tc.later)); holds != tc.holds {
				t.Errorf("synced %t, want %t: %s", holds, tc.holds, tc.reason)
			}
		})
	}
}
