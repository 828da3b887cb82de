// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestUsagesThatAreShown(t *testing.T) {
	for _, tc := range []struct {
		why, name string
		want      bool
	}{
		{"posts to X of a month, which the status of a team on starter has", "x-posts-2026-11", true},
		{"drafts of an account on TikTok, which it does not have", "tiktok-drafts-24h-0011223344556677", false},
		{"what a team stores, which is asked of the quota itself", "budget", false},
	} {
		usage := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: tc.name}}
		if got := countsXPosts.Create(event.CreateEvent{Object: usage}); got != tc.want {
			t.Errorf("%s: shown %v, want %v", tc.why, got, tc.want)
		}
	}
}

// All changes to a team's Usages during the pause lead to one reconciliation, and to none of other teams.
func TestATeamIsShownOnceForManyCounts(t *testing.T) {
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
		t.Fatalf("%d passes at once", queue.Len())
	}
	clk.Step(showWithin)
	if team, _ := queue.Get(); team.Name != "the-acme" {
		t.Errorf("shown is %v", team)
	}
	if queue.Len() != 0 {
		t.Errorf("%d more passes", queue.Len())
	}
}
