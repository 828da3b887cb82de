// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/posting/delivery"
)

// isReapplied reports whether the status of a cancelled post is outdated: it describes an earlier spec, or was written
// by a version that did not record cancellations.
func isReapplied(post *v1alpha1.Post) bool {
	if post.Status.CancelledAt == nil {
		return isCancelledBefore(post)
	}
	return post.Status.ObservedGeneration != post.Generation
}

func isCancelledBefore(post *v1alpha1.Post) bool {
	return post.Status.CancelledAt == nil && post.Status.Finished && post.Status.Phase == v1alpha1.PhaseCancelled
}

// describeReapplied updates the status of a cancelled post that was applied again. The observedGeneration changes, so
// that tools stop waiting, and the Ready condition reports that the apply has no effect.
func (d *deletions) describeReapplied(ctx context.Context, post *v1alpha1.Post) error {
	if isCancelledBefore(post) {
		post.Status.CancelledAt = cmp.Or(post.Status.FinishedAt, v1alpha1.NewTimePtr(d.o.Clock.Now()))
	}
	delivery.Describe(post, d.o.Clock.Now())
	if err := d.o.Client.Status().Update(ctx, post); err != nil {
		return fmt.Errorf("cannot write the status of a cancelled post that was applied again: %w", err)
	}
	if post.Spec.Cancelled {
		return nil // The spec is cancelled too.
	}
	d.o.Events.Reapplied(post)
	return nil
}

// listReapplied enqueues cancelled posts applied again while no manager was watching, or cancelled by an older version.
func (d *deletions) listReapplied(ctx context.Context, namespace string) error {
	withdrawn := fields.OneTermEqualSelector("status.phase", string(v1alpha1.PhaseCancelled))
	return kubeclient.EachPage(ctx, func(ctx context.Context, of kubeclient.Page) (string, error) {
		var page v1alpha1.PostList
		if err := d.o.APIReader.List(ctx, &page, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: withdrawn},
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
