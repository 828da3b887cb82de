// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/test/must"
)

// TestOpenMove reconciles the suspension of a team that a manager with several shards has started to move.
func TestOpenMove(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		shards int
		spec   bool
		// moved is set if the move ends now, condition is the reason of the suspension, and ended is set if the suspension
		// ends now.
		moved     bool
		condition string
		ended     bool
	}{
		"several shards":            {reason: "the controller of shards ends the move once the posts are labelled", shards: 2, condition: v1alpha1.ReasonSuspendedByMove},
		"one shard":                 {reason: "no controller labels the posts, so the team would be suspended for ever", shards: 1, moved: true, ended: true},
		"no number":                 {reason: "the default is one shard", moved: true, ended: true},
		"one shard, suspended":      {reason: "the spec still suspends the team, without a gap", shards: 1, spec: true, moved: true, condition: v1alpha1.ReasonSuspendedBySpec},
		"several shards, suspended": {reason: "the spec has precedence, and the move continues", shards: 2, spec: true, condition: v1alpha1.ReasonSuspendedBySpec},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			stored := team("acme", "team-acme", noon)
			stored.Spec.Suspend = tc.spec
			stored.Status.Shard = "01"
			stored.Status.Move = &v1alpha1.ShardMove{From: "00", Since: v1alpha1.NewTime(noon)}
			stored.Status.Suspensions = []v1alpha1.Suspension{{From: v1alpha1.NewTime(noon)}}
			scheme := runtime.NewScheme()
			must.Succeed(t, v1alpha1.AddToScheme(scheme))
			k8s := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&stored).WithStatusSubresource(&stored).Build()
			now := noon.Add(time.Minute)
			r := &suspensionReconciler{
				client: k8s, clock: clocktesting.NewFakePassiveClock(now), status: &conditions.Reporter{Client: k8s}, metrics: NewMetrics(nil),
				retention: time.Hour, shards: tc.shards,
			}
			for range 2 { // the second has nothing to change
				_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&stored)})
				must.Succeed(t, err)
			}
			var got v1alpha1.Team
			must.Succeed(t, k8s.Get(ctx, client.ObjectKeyFromObject(&stored), &got))
			if got.Moving() == tc.moved || tc.moved && !got.Status.Move.Until.Time.Equal(now) {
				t.Errorf("%s: the move is %+v, want ended: %v", tc.reason, got.Status.Move, tc.moved)
			}
			condition := ""
			if c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionSuspended); c != nil {
				condition = c.Reason
			}
			if condition != tc.condition {
				t.Errorf("%s: the condition has the reason %q, want %q", tc.reason, condition, tc.condition)
			}
			if len(got.Status.Suspensions) != 1 || got.Suspended() == tc.ended {
				t.Errorf("%s: the suspensions are %+v, want one that has ended: %v", tc.reason, got.Status.Suspensions, tc.ended)
			}
		})
	}
}
