// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/postindex"
)

// PostFeed feeds the index of posts from a watch. It keeps no post: each one is
// summed up as it passes by, also while a list of all of them comes in.
type PostFeed struct {
	index     *postindex.Index
	summarise func(*v1alpha1.Post) postindex.Summary
	reflector *cache.Reflector

	once   sync.Once
	synced chan struct{}
}

var (
	_ cache.TransformingStore      = (*PostFeed)(nil)
	_ cache.ReflectorBookmarkStore = (*PostFeed)(nil)
)

// NewPostFeed returns a feed for index.
func NewPostFeed(client rest.Interface, index *postindex.Index, summarise func(*v1alpha1.Post) postindex.Summary) *PostFeed {
	f := &PostFeed{index: index, summarise: summarise, synced: make(chan struct{})}
	source := cache.NewListWatchFromClient(client, postsResource, "", fields.Everything())
	f.reflector = cache.NewReflectorWithOptions(source, &v1alpha1.Post{}, f, cache.ReflectorOptions{Name: "posts"})
	return f
}

// Run watches until the context ends.
func (f *PostFeed) Run(ctx context.Context) { f.reflector.RunWithContext(ctx) }

// Synced is closed once the index holds all posts that there were at the start.
func (f *PostFeed) Synced() <-chan struct{} { return f.synced }

// Add takes in a post that the watch told to be new.
func (f *PostFeed) Add(obj any) error { return f.Update(obj) }

// Update takes in a post as the watch told it.
func (f *PostFeed) Update(obj any) error {
	item, err := f.item(obj)
	if err != nil {
		return err
	}
	f.index.Upsert(item.Namespace, item.Summary, item.Version)
	f.index.Progress(item.Version)
	return nil
}

// Delete takes out a post that the watch told to be gone.
func (f *PostFeed) Delete(obj any) error {
	item, err := f.item(obj)
	if err != nil {
		return err
	}
	f.index.Delete(item.Namespace, item.Summary.ID, item.Version)
	f.index.Progress(item.Version)
	return nil
}

// Replace takes over a complete list.
func (f *PostFeed) Replace(list []any, resourceVersion string) error {
	version, err := postindex.ParseVersion(resourceVersion)
	if err != nil {
		return err
	}
	items := make([]postindex.Item, 0, len(list))
	for _, obj := range list {
		item, err := f.item(obj)
		if err != nil {
			return err
		}
		items = append(items, *item)
	}
	f.index.Replace(items, version)
	f.once.Do(func() { close(f.synced) })
	return nil
}

// Bookmark notes how far the watch has come.
func (f *PostFeed) Bookmark(resourceVersion string) error {
	version, err := postindex.ParseVersion(resourceVersion)
	if err != nil {
		return err
	}
	f.index.Progress(version)
	return nil
}

// Resync has nothing to do: the index is what there is.
func (f *PostFeed) Resync() error { return nil }

// Transformer sums posts up while a list comes in, before any is kept.
func (f *PostFeed) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return f.item(obj) }
}

func (f *PostFeed) item(obj any) (*postindex.Item, error) {
	switch o := obj.(type) {
	case *postindex.Item:
		return o, nil
	case *v1alpha1.Post:
		version, err := postindex.ParseVersion(o.ResourceVersion)
		if err != nil {
			return nil, err
		}
		return &postindex.Item{Namespace: o.Namespace, Summary: f.summarise(o), Version: version}, nil
	default:
		return nil, fmt.Errorf("%T is not a Post", obj)
	}
}
