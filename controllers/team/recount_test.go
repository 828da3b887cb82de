// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
)

// oneOfEach returns a list with a number of objects for each kind.
func oneOfEach(kinds ...string) corev1.ResourceList {
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
		{"the quota is new, or no quota controller is running: nothing is rejected", nil, nil, false},
		{"the controller did not know the kinds", oneOfEach("posts", "media"), nil, true},
		{"the controller knew only one of the resources, as during an installation", oneOfEach("posts", "media"), oneOfEach("posts"), true},
		{"all kinds are counted", oneOfEach("posts", "media"), oneOfEach("posts", "media"), false},
		{"a limit is new, and the controller has not processed it", oneOfEach("posts"), oneOfEach("posts"), false},
		{"the previous count request is processed, and all other kinds are counted", oneOfEach("posts", "media", "teams"), oneOfEach("posts", "media"), false},
	} {
		q := &corev1.ResourceQuota{
			Spec: corev1.ResourceQuotaSpec{Hard: oneOfEach("posts", "media")}, Status: corev1.ResourceQuotaStatus{Hard: tc.hard, Used: tc.used},
		}
		if got := uncounted(q); got != tc.want {
			t.Errorf("%s: uncounted %t, want %t", tc.why, got, tc.want)
		}
	}
}

// A reconciliation is triggered when Kubernetes fails to count and once it has counted, but not by the counts in
// between.
func TestCountsDoNotRequeue(t *testing.T) {
	with := func(used corev1.ResourceList) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			Spec: corev1.ResourceQuotaSpec{Hard: oneOfEach("posts")}, Status: corev1.ResourceQuotaStatus{Hard: oneOfEach("posts"), Used: used},
		}
	}
	two := corev1.ResourceList{quota.ResourceNameOf("posts"): resource.MustParse("2")}
	for _, tc := range []struct {
		why           string
		before, after *corev1.ResourceQuota
		want          bool
	}{
		{"the quota cannot count: a count request is due later", &corev1.ResourceQuota{Spec: with(nil).Spec}, with(nil), true},
		{"the quota has counted now: no further request", with(nil), with(oneOfEach("posts")), true},
		{"the quota counted immediately", &corev1.ResourceQuota{Spec: with(nil).Spec}, with(oneOfEach("posts")), false},
		{"a post was created", with(oneOfEach("posts")), with(two), false},
	} {
		if got := wantedQuota.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: a pass %t, want %t", tc.why, got, tc.want)
		}
	}
}

// If Kubernetes never counts, the requests become rarer, for each team separately.
func TestRecountPausesGrow(t *testing.T) {
	began := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	var s recounts
	if _, ok := s.wait("acme", began); ok {
		t.Fatal("an unknown team must not wait")
	}
	asked := []time.Duration{}
	for now := began; now.Before(began.Add(2 * time.Hour)); now = now.Add(time.Second) {
		if !s.due("acme", now) {
			continue
		}
		asked = append(asked, now.Sub(began)/time.Second)
		s.recordRequest("acme", now)
		if wait, ok := s.wait("acme", now); !ok || wait < 2*firstRecount || wait > maxRecount {
			t.Errorf("after %s it waits %s (%t)", now.Sub(began), wait, ok)
		}
	}
	if want := []time.Duration{5, 15, 35, 75, 155, 315, 635, 1275, 2475, 3675, 4875, 6075}; !slices.Equal(asked, want) {
		t.Errorf("requested after %d seconds, want %d", asked, want)
	}
	if s.due("beta", began.Add(2*time.Hour)) {
		t.Error("another team's first pause is not over")
	}
	s.forget("acme")
	if _, ok := s.wait("acme", began); ok {
		t.Error("a counted team must not wait")
	}
}

func TestDisplayedUsages(t *testing.T) {
	for _, tc := range []struct {
		why, name string
		want      bool
	}{
		{"a month's posts to X, which the status of a starter team contains", "x-posts-2026-11", true},
		{"an account's drafts on TikTok, which the status does not contain", "tiktok-drafts-24h-0011223344556677", false},
		{"stored objects, which are requested from the quota", "budget", false},
	} {
		usage := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: tc.name}}
		if got := countsXPosts.Create(event.CreateEvent{Object: usage}); got != tc.want {
			t.Errorf("%s: shown %v, want %v", tc.why, got, tc.want)
		}
	}
}

// All changes to a team's Usages during the pause lead to one reconciliation, and to none of other teams.
func TestCountsAreBatched(t *testing.T) {
	r := &Reconciler{Options: Options{Owner: func(_ context.Context, namespace string) (*v1alpha1.Team, error) {
		switch namespace {
		case "acme":
			return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "the-acme"}}, nil
		case "nobody's":
			return nil, nil
		default:
			return nil, errors.New("the cache is not filled")
		}
	}}}
	clk := clocktesting.NewFakeClock(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC))
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](),
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: clk})
	defer queue.ShutDown()
	counted := r.enqueueCounted()
	for _, namespace := range []string{"acme", "nobody's", "unknown"} {
		usage := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x-posts-2026-11"}}
		counted.Create(t.Context(), event.CreateEvent{Object: usage}, queue)
		counted.Update(t.Context(), event.UpdateEvent{ObjectOld: usage, ObjectNew: usage}, queue)
		counted.Delete(t.Context(), event.DeleteEvent{Object: usage}, queue)
	}
	if queue.Len() != 0 {
		t.Fatalf("%d teams are queued immediately", queue.Len())
	}
	clk.Step(showDelay)
	if team, _ := queue.Get(); team.Name != "the-acme" {
		t.Errorf("queued %v", team)
	}
	if queue.Len() != 0 {
		t.Errorf("%d more passes", queue.Len())
	}
}
