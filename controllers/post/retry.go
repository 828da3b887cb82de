// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/controllers/post/internal/records"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

// retries reserves the targets of failed posts for the posts that retry them.
type retries struct {
	o        *Options
	archiver *records.Archiver
}

// readOriginal adds the failed post that a post retries to the facts. It reads the API server: the cache excludes
// finished posts.
func (r *retries) readOriginal(ctx context.Context, p *reconciliation, f *delivery.Facts) error {
	var original v1alpha1.Post
	err := r.o.APIReader.Get(ctx, types.NamespacedName{Namespace: p.key.Namespace, Name: p.Post.Spec.RetryOf.Name}, &original)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("cannot read the post that this one retries: %w", err)
	case err != nil || !original.DeletionTimestamp.IsZero():
		// The record of a post that is being deleted may have been written already, without a reservation.
		f.Original = &delivery.Original{}
	default:
		f.Original = &delivery.Original{Post: &original}
	}
	return nil
}

// reserve reserves targets of the failed post for this post, in one write at the resourceVersion that was read, which
// is never retried: after a conflict or a lost response, the next reconciliation reads the failed post again.
func (r *retries) reserve(ctx context.Context, p *reconciliation, f *delivery.Facts, targets []int) error {
	original := f.Original.Post.DeepCopy()
	delivery.Reserve(original, targets, p.Post.Name, p.now)
	if err := r.o.Client.Status().Update(ctx, original); err != nil {
		return fmt.Errorf("cannot reserve the targets of the post that this one retries: %w", err)
	}
	for _, i := range targets {
		if posting.Of(original).Target(i).RetriedBy != p.Post.Name {
			return publish.ErrDropped
		}
	}
	r.o.Failpoint(PointAfterReserve)
	p.log.Info("reserved the targets of a failed post", "uid", p.Post.UID, "failed", original.Name, "targets", targets)
	f.Original.Post = original
	r.archiver.Enqueue(original)
	return nil
}
