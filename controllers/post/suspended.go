// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
)

// kindSuspension is the kind of input that posts of a suspended team wait for: the end of the suspension.
const kindSuspension = "Suspension"

func suspensionInput(namespace string) input {
	return input{kindSuspension, types.NamespacedName{Namespace: namespace}}
}

// readSuspension reads whether the post's team is suspended. If it is, the function subscribes the post to the end of
// the suspension and reads again, so that an end between the two is not missed.
func (r *Reconciler) readSuspension(ctx context.Context, p *reconciliation) (err error) {
	for waits := false; ; waits = true {
		if p.suspended, p.suspensions, err = r.suspension(ctx, p.key.Namespace); err != nil {
			return fmt.Errorf("cannot tell whether the team is suspended: %w", err)
		}
		if !p.suspended || waits {
			return nil
		}
		r.states.subscribe(p.key, suspensionInput(p.key.Namespace))
	}
}

// suspension reports whether publishing is suspended in a namespace, and returns the team's recent suspensions.
func (r *Reconciler) suspension(ctx context.Context, namespace string) (suspended bool, recent []v1alpha1.Suspension, err error) {
	braked := r.o.SuspendAll.On()
	if r.o.Suspension == nil {
		return braked, nil, nil
	}
	suspended, recent, err = r.o.Suspension(ctx, namespace)
	return suspended || braked, recent, err
}

// suspendedNow reports whether claims are suspended in a namespace. It is checked again just before the claim, since
// the state may have changed during the reconciliation. A suspension after the claim does not stop the call, which is
// made and recorded.
func (r *Reconciler) suspendedNow(ctx context.Context, namespace string) bool {
	suspended, _, err := r.suspension(ctx, namespace)
	return suspended || err != nil
}

// deadlineShift returns the suspensions that move the deadlines of a namespace's posts. If they cannot be read, the
// team counts as suspended, so that no target fails at its deadline before a later reconciliation has read them.
func (r *Reconciler) deadlineShift(ctx context.Context, namespace string) *delivery.Deadlines {
	suspended, recent, err := r.suspension(ctx, namespace)
	return &delivery.Deadlines{Suspended: suspended || err != nil, Suspensions: recent, StartingDeadline: r.o.StartingDeadline, LongestDelay: r.o.LongestDelay}
}

// enqueueSuspended enqueues the posts that wait for the end of a team's suspension.
func (r *Reconciler) enqueueSuspended() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) (requests []reconcile.Request) {
		if team, ok := obj.(*v1alpha1.Team); ok {
			for _, post := range r.states.drain(suspensionInput(team.Spec.Namespace)) {
				requests = append(requests, reconcile.Request{NamespacedName: post})
			}
		}
		return requests
	})
}

// suspendAllChanged enqueues the waiting posts when the suspension of all teams ends. Posts of a team with its own
// suspension continue to wait.
func (r *Reconciler) suspendAllChanged() {
	if r.o.SuspendAll.On() {
		return
	}
	for _, post := range r.states.drainKind(kindSuspension) {
		r.enqueue(post)
	}
}
