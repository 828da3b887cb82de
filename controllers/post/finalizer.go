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

// ensureFinalizer adds the finalizer again if `herald release` or a person has removed it from an unfinished post that
// was, or may have been, sent, or whose Idempotency-Key outlives it: without the finalizer the post could be deleted
// without a record. It reports whether it added the finalizer, which triggers another reconciliation. It does not arm
// the post again, since the existing annotation still identifies a copy from a backup.
func (r *Reconciler) ensureFinalizer(ctx context.Context, p *reconciliation) (added bool, err error) {
	if !p.post.DeletionTimestamp.IsZero() || p.post.Status.Finished || !record.Required(p.post) && !r.records.hasIdempotencyKey(p.post) {
		return false, nil
	}
	added, err = addFinalizer(ctx, r.o.Client, p.post)
	p.wrote = p.wrote || added
	return added, err
}

// ensureFinalizerAtEnd adds the finalizer to an applied post that needs a record although nothing was sent: the post is
// finished, for example because it missed its time, or it is a copy whose original has an outcome that only a person
// can determine. Its deletion must be observed from now on: the post has a place in the lists, or it would be published
// if it is created again. Without an archive the finalizer is not needed.
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

// hasFinalizer reports whether a post has the finalizer, as nearly all reconciled posts do.
func hasFinalizer(post *v1alpha1.Post) bool {
	return controllerutil.ContainsFinalizer(post, v1alpha1.DeliveryFinalizer)
}

// addFinalizer adds the finalizer to a post under the resourceVersion that was read, unless the post has it. The
// caller's changes to the status stay in place.
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
