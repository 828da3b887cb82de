// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting/plan"
)

const msgBeyondPlan = "the starter plan allows %d connected accounts, and this connection exceeds that: the oldest ones that are not disabled count; " +
	"disable or delete another connection, or change the plan"

// withheld returns the outcome for a connection that must not be used, or the zero outcome if it may be used. It does
// not call platforms, so that a manager applies a changed configuration right after startup.
func (r *Reconciler) withheld(ctx context.Context, conn *v1alpha1.Connection) (outcome, error) {
	owned, err := r.Owned(ctx, conn.Namespace)
	if err != nil {
		return outcome{}, err
	}
	if !owned {
		return outcome{reason: v1alpha1.ReasonNoTeam, message: conditions.NoTeam(conn.Namespace).Message}, nil
	}
	if _, supported := r.Platforms[conn.Spec.Platform]; !supported && !conn.Spec.Disabled {
		return outcome{reason: v1alpha1.ReasonPlatformNotSupported, message: msgUnsupported}, nil
	}
	allowed, err := r.beyondPlan(ctx, conn)
	if err != nil || allowed == 0 {
		return outcome{}, err
	}
	return outcome{reason: v1alpha1.ReasonPlanLimit, message: fmt.Sprintf(msgBeyondPlan, allowed)}, nil
}

func withheldBy(conn *v1alpha1.Connection) string {
	switch reason := conditions.Reason(conn.Status.Conditions); reason {
	case v1alpha1.ReasonNoTeam, v1alpha1.ReasonPlatformNotSupported, v1alpha1.ReasonPlanLimit:
		return reason
	default:
		return ""
	}
}

// beyondPlan returns the plan's account limit if this connection exceeds it, and otherwise zero.
func (r *Reconciler) beyondPlan(ctx context.Context, conn *v1alpha1.Connection) (int, error) {
	if r.Owner == nil {
		return 0, nil
	}
	team, err := r.Owner(ctx, conn.Namespace)
	if err != nil {
		return 0, err
	}
	limits := plan.LimitsOf(team)
	if limits.Accounts == 0 {
		return 0, nil
	}
	all, err := connectionsOf(ctx, r.Client, conn.Namespace)
	if err != nil {
		return 0, err
	}
	if plan.Covers(plan.Usable(all, limits.Accounts), conn) {
		return 0, nil
	}
	return limits.Accounts, nil
}

func connectionsOf(ctx context.Context, reader client.Reader, namespace string) ([]*v1alpha1.Connection, error) {
	var found v1alpha1.ConnectionList
	if err := reader.List(ctx, &found, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the connections of namespace %q: %w", namespace, err)
	}
	all := make([]*v1alpha1.Connection, len(found.Items))
	for i := range found.Items {
		all[i] = &found.Items[i]
	}
	return all, nil
}

// neighbors returns the connections that may move within or beyond the plan: those of the team, if its plan limits
// them.
func (r *Reconciler) neighbors(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.affected(ctx, obj.GetNamespace(), false)
}

func (r *Reconciler) connectionsOfTeam(ctx context.Context, obj client.Object) []reconcile.Request {
	if team, ok := obj.(*v1alpha1.Team); ok {
		return r.affected(ctx, team.Spec.Namespace, true)
	}
	return nil
}

func (r *Reconciler) affected(ctx context.Context, namespace string, planChanged bool) []reconcile.Request {
	if !r.Namespaces.Include(namespace) {
		return nil
	}
	team, err := r.Owner(ctx, namespace)
	limited := err == nil && plan.LimitsOf(team).Accounts > 0
	if err == nil && !limited && !planChanged {
		return nil
	}
	var all []*v1alpha1.Connection
	if err == nil {
		all, err = connectionsOf(ctx, r.Client, namespace)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot determine which connections the plan covers", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for _, c := range all {
		if limited || conditions.Reason(c.Status.Conditions) == v1alpha1.ReasonPlanLimit {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return requests
}
