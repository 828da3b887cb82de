// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/record"
)

// ensureFinalizer puts the finalizer on again where `herald release` or a person has taken it off a post
// of which something was sent, or may have been, or whose Idempotency-Key outlives it: without
// it, the post could be deleted and leave no record. It reports whether it did, which wakes the
// post again. What was armed is not armed again: a copy from a backup is still known by its
// annotation.
func (r *Reconciler) ensureFinalizer(ctx context.Context, p *reconciliation) (added bool, err error) {
	if !p.post.DeletionTimestamp.IsZero() || p.post.Status.Finished || !record.Required(p.post) && !r.records.hasIdempotencyKey(p.post) {
		return false, nil
	}
	added, err = addFinalizer(ctx, r.o.Client, p.post)
	p.wrote = p.wrote || added
	return added, err
}

// ensureFinalizerAtEnd puts the finalizer on an applied post of which a record is about to be needed although
// nothing was sent for it: one that is finished, as its time was missed, or that waits for a person
// to tell what became of the object it is a copy of. From then on its deletion must be seen: it
// has a place in the lists, or would be published if it came back. Where nothing is kept, it goes
// as it came.
func (r *Reconciler) ensureFinalizerAtEnd(ctx context.Context, p *reconciliation) error {
	if hasFinalizer(p.post) || !p.post.DeletionTimestamp.IsZero() || !delivery.Finished(p.post) && !record.Required(p.post) {
		return nil
	}
	if _, kept, err := r.records.writableTeam(ctx, p.key.Namespace); err != nil || !kept {
		return err
	}
	_, err := addFinalizer(ctx, r.o.Client, p.post)
	return err
}

// hasFinalizer reports whether a post has the finalizer, as nearly all have that are looked at.
func hasFinalizer(post *v1alpha1.Post) bool {
	return controllerutil.ContainsFinalizer(post, v1alpha1.DeliveryFinalizer)
}

// addFinalizer puts the finalizer on a post as it was read, unless it has it. The status that
// the caller has entered stays.
func addFinalizer(ctx context.Context, c client.Client, post *v1alpha1.Post) (added bool, err error) {
	if hasFinalizer(post) {
		return false, nil
	}
	base, status := post.DeepCopy(), post.Status.DeepCopy()
	controllerutil.AddFinalizer(post, v1alpha1.DeliveryFinalizer)
	if err := c.Patch(ctx, post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("cannot put the finalizer on the post: %w", err)
	}
	post.Status = *status
	return true, nil
}
