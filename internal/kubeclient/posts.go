// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// UnfinishedPosts selects the posts that are not finished. The manager caches only these.
func UnfinishedPosts() fields.Selector {
	return fields.OneTermNotEqualSelector("status.finished", "true")
}

// EachUnfinishedPost lists the metadata of the unfinished posts that the options select, and visits them page by page.
// Requests of visit do not count towards the size of a page.
func EachUnfinishedPost(ctx context.Context, from client.Reader, visit func([]metav1.PartialObjectMetadata) error, options ...client.ListOption) error {
	return EachPage(ctx, func(ctx context.Context, of Page) (string, error) {
		page := metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PostList"))
		selected := append([]client.ListOption{client.MatchingFieldsSelector{Selector: UnfinishedPosts()}, client.Limit(of.Limit), client.Continue(of.Continue)}, options...)
		if err := from.List(ctx, &page, selected...); err != nil {
			return "", err //nolint:wrapcheck // the caller names the operation
		}
		return page.Continue, visit(page.Items)
	})
}
