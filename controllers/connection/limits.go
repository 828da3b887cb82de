// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/ratelimit"
)

// limitChanged passes updates that change status.rateLimitedUntil, which a user may have cleared.
func limitChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Connection)
		after, is := e.ObjectNew.(*v1alpha1.Connection)
		return ok && is && !v1alpha1.SemanticEqual(before.Status.RateLimitedUntil, after.Status.RateLimitedUntil)
	}}
}

// isLimitStale reports whether the RateLimited condition contradicts the status.
func isLimitStale(conn *v1alpha1.Connection, now time.Time) bool {
	described := conn.DeepCopy()
	ratelimit.Describe(described, "", now)
	return !v1alpha1.SemanticEqual(limitOf(conn), limitOf(described))
}

func limitOf(conn *v1alpha1.Connection) *metav1.Condition {
	return meta.FindStatusCondition(conn.Status.Conditions, v1alpha1.ConditionRateLimited)
}

// requeueForLimit shortens the requeue delay rest to the end of a current rate limit. Zero means no requeue.
func requeueForLimit(conn *v1alpha1.Connection, rest time.Duration, now time.Time) time.Duration {
	until := ratelimit.BlockedUntil(&conn.Status, now)
	if until.IsZero() {
		return rest
	}
	ends := until.Sub(now) + time.Millisecond
	if rest <= 0 {
		return ends
	}
	return min(rest, ends)
}

// reportLimit updates the RateLimited condition of a connection that is not being examined. It returns the errors of
// conditions.Reporter, including conflicts.
func (r *Reconciler) reportLimit(ctx context.Context, conn *v1alpha1.Connection, now time.Time) error {
	before := conn.Status.DeepCopy()
	ratelimit.Describe(conn, "", now) // rateLimitedUntil remains in the status: the first post of the app checks whether the limit is over
	if err := r.status.Report(ctx, conn, before, &conn.Status); err != nil {
		return err
	}
	r.announceLimit(ctx, conn, before.Conditions)
	return nil
}

func (r *Reconciler) announceLimit(ctx context.Context, conn *v1alpha1.Connection, before []metav1.Condition) {
	change, changed := ratelimit.Changed(before, conn.Status.Conditions)
	if !changed {
		return
	}
	ctrl.LoggerFrom(ctx).Info("the limit of an account has changed", "platform", conn.Spec.Platform, "limited", change.Begun, "reason", change.Reason, "message", change.Message)
	if r.Events == nil {
		return
	}
	kind, reason, note := corev1.EventTypeWarning, v1alpha1.ReasonRateLimited, change.Reason+": "+change.Message
	if !change.Begun {
		kind, reason, note = corev1.EventTypeNormal, v1alpha1.ReasonRateLimitEnded, change.Message
	}
	r.Events.Eventf(conn, nil, kind, reason, r.status.Action, "%s", note)
}
