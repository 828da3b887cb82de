// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/herald-social/herald/internal/quota"
)

// counts returns a list with a number of objects for each kind.
func counts(kinds ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, kind := range kinds {
		list[quota.ResourceNameOf(kind)] = resource.MustParse("1")
	}
	return list
}

func TestUncounted(t *testing.T) {
	for _, tc := range []struct {
		why        string
		hard, used corev1.ResourceList
		want       bool
	}{
		{"it was just made, or no controller of quotas runs: nothing is refused", nil, nil, false},
		{"the controller did not know the kinds", counts("posts", "media"), nil, true},
		{"it knew one of them, as while they are installed", counts("posts", "media"), counts("posts"), true},
		{"all is counted", counts("posts", "media"), counts("posts", "media"), false},
		{"a bound is new, and the controller has not seen it", counts("posts"), counts("posts"), false},
		{"the question of the pass before is seen, and all else counted", counts("posts", "media", "teams"), counts("posts", "media"), false},
	} {
		q := &corev1.ResourceQuota{
			Spec: corev1.ResourceQuotaSpec{Hard: counts("posts", "media")}, Status: corev1.ResourceQuotaStatus{Hard: tc.hard, Used: tc.used},
		}
		if got := uncounted(q); got != tc.want {
			t.Errorf("%s: uncounted %t, want %t", tc.why, got, tc.want)
		}
	}
}

// A reconciliation is triggered when Kubernetes fails to count and once it has counted, but not by the counts in
// between.
func TestWhatIsCountedLeadsToNoPass(t *testing.T) {
	with := func(used corev1.ResourceList) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			Spec: corev1.ResourceQuotaSpec{Hard: counts("posts")}, Status: corev1.ResourceQuotaStatus{Hard: counts("posts"), Used: used},
		}
	}
	two := corev1.ResourceList{quota.ResourceNameOf("posts"): resource.MustParse("2")}
	for _, tc := range []struct {
		why           string
		before, after *corev1.ResourceQuota
		want          bool
	}{
		{"it cannot count: a question is due later", &corev1.ResourceQuota{Spec: with(nil).Spec}, with(nil), true},
		{"it could not count, and has: nothing more is asked", with(nil), with(counts("posts")), true},
		{"it has counted at once", &corev1.ResourceQuota{Spec: with(nil).Spec}, with(counts("posts")), false},
		{"a post came", with(counts("posts")), with(two), false},
	} {
		if got := wantedQuota.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: a pass %t, want %t", tc.why, got, tc.want)
		}
	}
}

// If Kubernetes never counts, the requests become rarer, for each team separately.
func TestRecountsBecomeRare(t *testing.T) {
	began := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	var s recounts
	if _, ok := s.wait("acme", began); ok {
		t.Fatal("nothing is known of it")
	}
	asked := []time.Duration{}
	for now := began; now.Before(began.Add(2 * time.Hour)); now = now.Add(time.Second) {
		if !s.due("acme", now) {
			continue
		}
		asked = append(asked, now.Sub(began)/time.Second)
		s.recordRequest("acme", now)
		if wait, ok := s.wait("acme", now); !ok || wait < 2*firstRecount || wait > mostRecount {
			t.Errorf("after %s it waits %s (%t)", now.Sub(began), wait, ok)
		}
	}
	if want := []time.Duration{5, 15, 35, 75, 155, 315, 635, 1275, 2475, 3675, 4875, 6075}; !slices.Equal(asked, want) {
		t.Errorf("asked after %d seconds, want %d", asked, want)
	}
	if s.due("beta", began.Add(2*time.Hour)) {
		t.Error("another team's first pause has just begun")
	}
	s.forget("acme")
	if _, ok := s.wait("acme", began); ok {
		t.Error("what is counted waits for nothing")
	}
}
