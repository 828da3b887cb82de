// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

// hold puts the finalizer on again where `herald release` or a person has taken it off a post
// of which something was sent, or whose Idempotency-Key outlives it: without it, the post could
// be deleted and leave no record. It reports whether it did, which wakes the post again. What
// was armed is not armed again: a copy from a backup is still known by its annotation.
func (r *Reconciler) hold(ctx context.Context, p *pass) (held bool, err error) {
	if !p.post.DeletionTimestamp.IsZero() || p.post.Status.Finished || !posting.Started(p.post) && !r.records.holdsKey(p.post) {
		return false, nil
	}
	held, err = addFinalizer(ctx, r.o.Client, p.post)
	p.wrote = p.wrote || held
	return held, err
}

// holdEnd puts the finalizer on an applied post that is about to be finished although nothing
// was sent for it, as one whose time was missed. From then on it has a place in the lists, which
// it takes along only if its deletion is seen. Where nothing is kept, it goes as it came.
func (r *Reconciler) holdEnd(ctx context.Context, p *pass) error {
	if !p.post.DeletionTimestamp.IsZero() || !delivery.Finished(p.post) {
		return nil
	}
	if _, kept, err := r.records.keeper(ctx, p.key.Namespace); err != nil || !kept {
		return err
	}
	_, err := addFinalizer(ctx, r.o.Client, p.post)
	return err
}

// addFinalizer puts the finalizer on a post as it was read, unless it has it. The status that
// the caller has entered stays.
func addFinalizer(ctx context.Context, c client.Client, post *v1alpha1.Post) (added bool, err error) {
	base, status := post.DeepCopy(), post.Status.DeepCopy()
	if !controllerutil.AddFinalizer(post, v1alpha1.DeliveryFinalizer) {
		return false, nil
	}
	if err := c.Patch(ctx, post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("cannot put the finalizer on the post: %w", err)
	}
	post.Status = *status
	return true, nil
}
