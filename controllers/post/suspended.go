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

// kindSuspension is what posts of a suspended team wait for: the end of the suspension.
const kindSuspension = "Suspension"

func suspensionInput(namespace string) input {
	return input{kindSuspension, types.NamespacedName{Namespace: namespace}}
}

// readSuspension reads whether the post's team is suspended. A post of such a team waits for
// the end of it, from before that is read on: an end between the two wakes it.
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

// suspension tells whether nothing is published in a namespace, and when that was so.
func (r *Reconciler) suspension(ctx context.Context, namespace string) (suspended bool, recent []v1alpha1.Suspension, err error) {
	braked := r.o.SuspendAll.On()
	if r.o.Suspension == nil {
		return braked, nil, nil
	}
	suspended, recent, err = r.o.Suspension(ctx, namespace)
	return suspended || braked, recent, err
}

// suspendedNow reports whether nothing may be claimed in a namespace: that was allowed when the
// pass began, and is looked at again just before. A suspension that comes still later finds the
// claim made: then the call is made and recorded as well.
func (r *Reconciler) suspendedNow(ctx context.Context, namespace string) bool {
	suspended, _, err := r.suspension(ctx, namespace)
	return suspended || err != nil
}

// deadlineShift returns what moves the deadlines of a namespace's posts. While that cannot be told, nothing is
// given up for the time that it takes: the next pass knows.
func (r *Reconciler) deadlineShift(ctx context.Context, namespace string) *delivery.Deadlines {
	suspended, recent, err := r.suspension(ctx, namespace)
	return &delivery.Deadlines{Suspended: suspended || err != nil, Suspensions: recent, StartingDeadline: r.o.StartingDeadline, LongestDelay: r.o.LongestDelay}
}

// enqueueSuspended has the end of a team's suspension wake the posts that wait for it.
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

// suspendAllChanged wakes the posts that wait when the brake of all teams is released. Of a team
// whose Team says still that it is suspended, they wait on.
func (r *Reconciler) suspendAllChanged() {
	if r.o.SuspendAll.On() {
		return
	}
	for _, post := range r.states.drainKind(kindSuspension) {
		r.enqueue(post)
	}
}
