// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shardmanager

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// splitCache reads posts from their own cache and everything else from a shared one.
type splitCache struct {
	cache.Cache // the shared cache

	posts cache.Cache
	// leads is set if the shared cache gets its indexes through this one.
	leads bool

	mu sync.Mutex
	// removals remove the event handlers from the informers of the shared cache. removed is set once they were called.
	removals []func()
	removed  bool
}

func isPost(obj runtime.Object) bool {
	switch obj.(type) {
	case *v1alpha1.Post, *v1alpha1.PostList:
		return true
	default:
		return false
	}
}

// of returns the cache that holds an object.
func (c *splitCache) of(obj runtime.Object) cache.Cache {
	if isPost(obj) {
		return c.posts
	}
	return c.Cache
}

// Get implements client.Reader.
func (c *splitCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	return c.of(obj).Get(ctx, key, obj, options...) //nolint:wrapcheck // it is a cache
}

// List implements client.Reader.
func (c *splitCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.of(list).List(ctx, list, options...) //nolint:wrapcheck // it is a cache
}

// IndexField implements client.FieldIndexer. For a shard, the shared cache has its indexes already.
func (c *splitCache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	if !isPost(obj) && !c.leads {
		return nil
	}
	return c.of(obj).IndexField(ctx, obj, field, extract) //nolint:wrapcheck // it is a cache
}

// WaitForCacheSync implements cache.Informers.
func (c *splitCache) WaitForCacheSync(ctx context.Context) bool {
	return c.posts.WaitForCacheSync(ctx) && c.Cache.WaitForCacheSync(ctx)
}

// GetInformer implements cache.Informers.
func (c *splitCache) GetInformer(ctx context.Context, obj client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.of(obj).GetInformer(ctx, obj, options...)
	if err != nil || isPost(obj) {
		return informer, err //nolint:wrapcheck // it is a cache
	}
	return &sharedInformer{informer, c}, nil
}

// GetInformerForKind implements cache.Informers.
func (c *splitCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	if gvk == v1alpha1.GroupVersion.WithKind("Post") {
		return c.posts.GetInformerForKind(ctx, gvk, options...) //nolint:wrapcheck // it is a cache
	}
	informer, err := c.Cache.GetInformerForKind(ctx, gvk, options...)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is a cache
	}
	return &sharedInformer{informer, c}, nil
}

// removeHandlers removes the shard's event handlers from the shared informers, which outlive it. A source that is still
// starting may add one later, which is removed at once.
func (c *splitCache) removeHandlers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, remove := range c.removals {
		remove()
	}
	c.removals, c.removed = nil, true
}

// sharedInformer records the event handlers that are added.
type sharedInformer struct {
	cache.Informer

	cache *splitCache
}

func (i *sharedInformer) added(handler toolscache.ResourceEventHandlerRegistration, err error) (toolscache.ResourceEventHandlerRegistration, error) {
	if err == nil {
		i.cache.mu.Lock()
		defer i.cache.mu.Unlock()
		remove := func() { _ = i.RemoveEventHandler(handler) }
		if i.cache.removed {
			remove()
		} else {
			i.cache.removals = append(i.cache.removals, remove)
		}
	}
	return handler, err
}

// AddEventHandler implements cache.Informer.
func (i *sharedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.added(i.Informer.AddEventHandler(handler))
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (i *sharedInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.added(i.Informer.AddEventHandlerWithResyncPeriod(handler, resync))
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i *sharedInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.added(i.Informer.AddEventHandlerWithOptions(handler, options))
}

// splitClient reads from a splitCache what its client reads from the shared cache.
type splitClient struct {
	client.Client

	cache *splitCache
}

// Get implements client.Reader.
func (c *splitClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if isPost(obj) {
		return c.cache.Get(ctx, key, obj, options...)
	}
	return c.Client.Get(ctx, key, obj, options...) //nolint:wrapcheck // it is a client
}

// List implements client.Reader.
func (c *splitClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if isPost(list) {
		return c.cache.List(ctx, list, options...)
	}
	return c.Client.List(ctx, list, options...) //nolint:wrapcheck // it is a client
}

// newFreshInformer returns an informer whose first list is as recent as the request. The API server may answer others
// from its watch cache, which could lack the last claims of the shard's previous holder.
func newFreshInformer(from toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(&freshLister{from, toolscache.ToListerWatcherWithContext(from)}, obj, resync, indexers)
}

type freshLister struct {
	toolscache.ListerWatcher
	toolscache.ListerWatcherWithContext
}

// List implements toolscache.Lister.
func (l *freshLister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// ListWithContext implements toolscache.ListerWithContext.
func (l *freshLister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	return l.ListerWatcherWithContext.ListWithContext(ctx, options) //nolint:wrapcheck // the informer logs it
}
