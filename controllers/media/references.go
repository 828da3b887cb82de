// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/posting"
)

// mediaOf enqueues the Media of a post. For a post with more Media than the cache keeps, the sweep handles the rest.
func mediaOf() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		post, ok := obj.(*v1alpha1.Post)
		if !ok {
			return nil
		}
		for _, name := range posting.Of(post).MediaNames() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}})
		}
		return requests
	})
}

// references finds the posts that refer to Media: client reads from the cache, apiReader from the API server.
type references struct{ client, apiReader client.Reader }

// inUse reports whether an unfinished post refers to a Media. The sweep reads finished posts before it deletes
// anything.
func (r references) inUse(ctx context.Context, m *v1alpha1.Media) (bool, error) {
	var posts v1alpha1.PostList
	inBucket := client.MatchingFields{kubeclient.MediaIndex: kubeclient.MediaBucket(m.Name)}
	if err := r.client.List(ctx, &posts, client.InNamespace(m.Namespace), inBucket, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("cannot look for posts that refer to the media file: %w", err)
	}
	for i := range posts.Items {
		names, err := r.mediaNames(ctx, &posts.Items[i])
		if err != nil {
			return false, err
		}
		if slices.Contains(names, m.Name) {
			return true, nil
		}
	}
	return false, nil
}

// mediaNames returns the names of a post's Media, from the API server if the cache does not keep them.
func (r references) mediaNames(ctx context.Context, post *v1alpha1.Post) ([]string, error) {
	if kubeclient.HasMediaRefs(post) {
		return posting.Of(post).MediaNames(), nil
	}
	var live v1alpha1.Post
	if err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(post), &live); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot read post %s, which refers to many media files: %w", post.Name, err)
	}
	return posting.Of(&live).MediaNames(), nil
}

// referenced returns the Media that a namespace's posts refer to, including finished ones, as read from the API server.
func (r references) referenced(ctx context.Context, namespace string, names map[string]bool) (map[string]bool, error) {
	found := map[string]bool{}
	err := kubeclient.EachPage(ctx, func(ctx context.Context, page kubeclient.Page) (string, error) {
		var posts v1alpha1.PostList
		if err := r.apiReader.List(ctx, &posts, client.InNamespace(namespace), client.Limit(page.Limit), client.Continue(page.Continue)); err != nil {
			return "", fmt.Errorf("cannot list the posts of namespace %q: %w", namespace, err)
		}
		for i := range posts.Items {
			for _, name := range posting.Of(&posts.Items[i]).MediaNames() {
				if names[name] {
					found[name] = true
				}
			}
		}
		return posts.Continue, nil
	})
	return found, err
}
