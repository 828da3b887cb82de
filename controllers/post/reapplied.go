// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pages"
	"github.com/herald-social/herald/posting/delivery"
)

// isReapplied reports whether a cancelled post has a spec that its status does not speak of yet.
func isReapplied(post *v1alpha1.Post) bool {
	return post.Status.CancelledAt != nil && post.Status.ObservedGeneration != post.Generation
}

// describeReapplied writes that a spec was seen which does not bring a cancelled post back, so that
// tools which wait for the post go on, and people learn why it is not published.
func (r *Reconciler) describeReapplied(ctx context.Context, post *v1alpha1.Post) error {
	delivery.Describe(post, r.o.Clock.Now())
	if err := r.o.Client.Status().Update(ctx, post); err != nil {
		return fmt.Errorf("cannot write the status of a cancelled post that was applied again: %w", err)
	}
	r.recorder.event(post, said(post, delivery.Event{Warning: true, Reason: v1alpha1.ReasonCancelled}))
	return nil
}

// listReapplied notes the cancelled posts that were applied again while no manager watched.
func (d *deletions) listReapplied(ctx context.Context, namespace string) error {
	withdrawn := fields.OneTermEqualSelector("status.phase", string(v1alpha1.PhaseCancelled))
	return pages.Each(ctx, func(ctx context.Context, of pages.Page) (string, error) {
		var page v1alpha1.PostList
		if err := d.reconciler.o.APIReader.List(ctx, &page, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: withdrawn},
			client.Limit(of.Limit), client.Continue(of.Continue)); err != nil {
			return "", fmt.Errorf("cannot list cancelled posts: %w", err)
		}
		for i := range page.Items {
			if isReapplied(&page.Items[i]) {
				d.enqueue(&page.Items[i])
			}
		}
		return page.Continue, nil
	})
}
