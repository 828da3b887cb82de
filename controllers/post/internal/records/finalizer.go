// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/record"
)

// Finalizers keeps posts until their records are saved.
type Finalizers struct {
	o          *Options
	records    *Records
	namespaces *namespaceCache

	mu sync.Mutex
	// blockedSince holds the time of the first failed save of each post that is being deleted.
	blockedSince map[types.UID]time.Time
}

// NewFinalizers returns the finalizers of posts with records.
func NewFinalizers(o *Options, records *Records) *Finalizers {
	return &Finalizers{o: o, records: records, namespaces: newNamespaceCache(o), blockedSince: map[types.UID]time.Time{}}
}

// Ensure adds the finalizer again if `herald release` or a user has removed it from an unfinished post that
// was, or may have been, sent, or whose Idempotency-Key outlives it: without the finalizer the post could be deleted
// without a record. It reports whether it added the finalizer, which triggers another reconciliation. It does not arm
// the post again, since the existing annotation still identifies a copy from a backup.
func (f *Finalizers) Ensure(ctx context.Context, post *v1alpha1.Post) (added bool, err error) {
	if !post.DeletionTimestamp.IsZero() || post.Status.Finished || !record.Required(post) && !f.hasIdempotencyKey(post) {
		return false, nil
	}
	return addFinalizer(ctx, f.o.Client, post)
}

// EnsureAtEnd adds the finalizer to an applied post that needs a record although nothing was sent: the post is
// finished, for example because it missed its deadline, or it is a copy whose original has an outcome that only a user
// can determine. From now on, its deletion must be observed: the post has a place in the lists, or would be published
// if it were re-created. Without an archive, the finalizer is not needed.
func (f *Finalizers) EnsureAtEnd(ctx context.Context, post *v1alpha1.Post) error {
	if hasFinalizer(post) || !post.DeletionTimestamp.IsZero() || !delivery.Finished(post) && !record.Required(post) {
		return nil
	}
	if _, kept, err := f.records.writableTeam(ctx, post.Namespace); err != nil || !kept {
		return err
	}
	_, err := addFinalizer(ctx, f.o.Client, post)
	return err
}

func hasFinalizer(post *v1alpha1.Post) bool {
	return controllerutil.ContainsFinalizer(post, v1alpha1.DeliveryFinalizer)
}

// addFinalizer adds the finalizer to a post under the resourceVersion that was read, unless the post has it. The
// caller's changes to the status are kept.
func addFinalizer(ctx context.Context, c client.Client, post *v1alpha1.Post) (added bool, err error) {
	if hasFinalizer(post) {
		return false, nil
	}
	base, status := post.DeepCopy(), post.Status.DeepCopy()
	controllerutil.AddFinalizer(post, v1alpha1.DeliveryFinalizer)
	if err := c.Patch(ctx, post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("cannot add the finalizer to the post: %w", err)
	}
	post.Status = *status
	return true, nil
}

func removeFinalizer(ctx context.Context, c client.Client, post *v1alpha1.Post) error {
	base := post.DeepCopy()
	controllerutil.RemoveFinalizer(post, v1alpha1.DeliveryFinalizer)
	if err := c.Patch(ctx, post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot release the post for deletion: %w", err)
	}
	return nil
}
