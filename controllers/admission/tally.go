// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// Tally counts the unfinished posts of each namespace. It updates the counts with each event of the cache, so that a
// request does not have to list posts.
type Tally struct {
	mu         sync.Mutex
	unfinished map[string]int64
}

// NewTally returns a Tally that follows the posts of a cache.
func NewTally(ctx context.Context, posts cache.Cache) (*Tally, error) {
	return newTally(ctx, posts, &v1alpha1.Post{})
}

// NewMetadataTally returns a Tally that follows the metadata of the posts in a cache, which must select the unfinished
// posts. Unlike NewTally, it counts posts that wait only for their record, which are few.
func NewMetadataTally(ctx context.Context, posts cache.Cache) (*Tally, error) {
	post := &metav1.PartialObjectMetadata{}
	post.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
	return newTally(ctx, posts, post)
}

func newTally(ctx context.Context, posts cache.Cache, kind client.Object) (*Tally, error) {
	t := &Tally{unfinished: map[string]int64{}}
	informer, err := posts.GetInformer(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("cannot count the unfinished posts: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { t.add(obj, 1) },
		UpdateFunc: func(before, after any) { t.add(before, -1); t.add(after, 1) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			t.add(obj, -1)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot count the unfinished posts: %w", err)
	}
	return t, nil
}

func (t *Tally) add(obj any, by int64) {
	object, ok := obj.(client.Object)
	if !ok {
		return
	}
	if post, ok := obj.(*v1alpha1.Post); ok && !posting.Unfinished(posting.Of(post).Phase()) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	namespace := object.GetNamespace()
	if t.unfinished[namespace] += by; t.unfinished[namespace] == 0 {
		delete(t.unfinished, namespace)
	}
}

// Unfinished returns the number of posts in a namespace that are drafts, scheduled or being delivered.
func (t *Tally) Unfinished(namespace string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unfinished[namespace]
}
