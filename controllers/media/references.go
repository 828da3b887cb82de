// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pages"
	"github.com/herald-social/herald/posting"
)

// mediaIndex finds posts by the names of their Media.
const mediaIndex = "spec.mediaRefs"

// references is posting.MediaNames for an index.
func references(obj client.Object) []string {
	post, ok := obj.(*v1alpha1.Post)
	if !ok {
		return nil
	}
	return posting.MediaNames(&post.Spec)
}

// mediaOf enqueues the Media of a post.
func mediaOf() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, name := range references(obj) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}})
		}
		return requests
	})
}

// inUse reports whether an unfinished post refers to a Media. Finished ones are not
// watched; the sweep reads them before anything is deleted.
func (r *Reconciler) inUse(ctx context.Context, m *v1alpha1.Media) (bool, error) {
	var posts v1alpha1.PostList
	if err := r.Client.List(ctx, &posts, client.InNamespace(m.Namespace), client.MatchingFields{mediaIndex: m.Name}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("cannot look for posts that refer to the media file: %w", err)
	}
	return len(posts.Items) > 0, nil
}

// referenced asks the API server which of the given Media the posts of a namespace
// refer to, finished ones too.
func (r *Reconciler) referenced(ctx context.Context, namespace string, names map[string]bool) (map[string]bool, error) {
	found := map[string]bool{}
	err := pages.Each(ctx, func(ctx context.Context, page pages.Page) (string, error) {
		var posts v1alpha1.PostList
		if err := r.APIReader.List(ctx, &posts, client.InNamespace(namespace), client.Limit(page.Limit), client.Continue(page.Continue)); err != nil {
			return "", fmt.Errorf("cannot list the posts of namespace %q: %w", namespace, err)
		}
		for i := range posts.Items {
			for _, name := range posting.MediaNames(&posts.Items[i].Spec) {
				if names[name] {
					found[name] = true
				}
			}
		}
		return posts.Continue, nil
	})
	return found, err
}
