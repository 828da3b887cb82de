// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shardmanager

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// countingCache counts the event handlers of its one informer, and the kinds that it was asked for.
type countingCache struct {
	ctrlcache.Cache
	ctrlcache.Informer

	handlers, indexes, reads int
}

func (c *countingCache) GetInformer(context.Context, client.Object, ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	return c, nil
}

func (c *countingCache) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	c.handlers++
	return nil, nil
}

func (c *countingCache) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	c.handlers--
	return nil
}

func (c *countingCache) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	c.indexes++
	return nil
}

func (c *countingCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	c.reads++
	return nil
}

func (c *countingCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	c.reads++
	return nil
}

func TestSplitCache(t *testing.T) {
	posts, shared := &countingCache{}, &countingCache{}
	c := &splitCache{Cache: shared, posts: posts}
	var late ctrlcache.Informer
	for _, obj := range []client.Object{&v1alpha1.Post{}, &v1alpha1.Team{}, &v1alpha1.Connection{}} {
		informer, err := c.GetInformer(t.Context(), obj)
		must.Succeed(t, err)
		late = informer
		_, err = informer.AddEventHandler(nil)
		must.Succeed(t, err)
		must.Succeed(t, c.IndexField(t.Context(), obj, "field", nil))
		must.Succeed(t, c.Get(t.Context(), client.ObjectKey{}, obj))
	}
	must.Succeed(t, c.List(t.Context(), &v1alpha1.PostList{}))
	must.Succeed(t, c.List(t.Context(), &v1alpha1.TeamList{}))
	if posts.reads != 2 || shared.reads != 3 {
		t.Errorf("posts are read from their own cache: got %d and %d reads, want 2 and 3", posts.reads, shared.reads)
	}
	if posts.indexes != 1 || shared.indexes != 0 {
		t.Errorf("the shared cache has its indexes already: got %d and %d new ones, want 1 and 0", posts.indexes, shared.indexes)
	}
	c.removeHandlers()
	_, err := late.AddEventHandler(nil) // by a source that was still starting
	must.Succeed(t, err)
	if posts.handlers != 1 || shared.handlers != 0 {
		t.Errorf("the shared informers keep %d handlers of a shard that was given up; its own has %d, which ends with it", shared.handlers, posts.handlers)
	}
}

// process is a process's manager.
type process struct {
	ctrl.Manager

	cache ctrlcache.Cache
}

func (p *process) GetCache() ctrlcache.Cache   { return p.cache }
func (p *process) GetClient() client.Client    { return nil }
func (p *process) GetConfig() *rest.Config     { return &rest.Config{} }
func (p *process) GetHTTPClient() *http.Client { return http.DefaultClient }
func (p *process) GetRESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind("Post"), meta.RESTScopeNamespace)
	return mapper
}

func (p *process) GetScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

func (p *process) Add(manager.Runnable) error { return nil }

func TestShardsOfLeading(t *testing.T) {
	shared := &countingCache{}
	leading, err := NewLeading(t.Context(), &process{cache: shared}, ctrlcache.Options{})
	must.Succeed(t, err)
	m, err := New(leading, ctrlcache.Options{}, "00")
	must.Succeed(t, err)
	if m.cache.Cache != ctrlcache.Cache(shared) {
		t.Error("a shard waits for the leader's cache of posts, which other replicas never fill")
	}
}

// versions is a ListerWatcher that records the requested versions.
type versions struct {
	cache.ListerWatcher

	asked []string
}

func (v *versions) List(options metav1.ListOptions) (runtime.Object, error) {
	v.asked = append(v.asked, options.ResourceVersion)
	return &v1alpha1.PostList{}, nil
}

func TestFreshLister(t *testing.T) {
	from := &versions{}
	l := &freshLister{from, cache.ToListerWatcherWithContext(from)}
	for _, version := range []string{"0", "", "7"} {
		_, err := l.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: version})
		must.Succeed(t, err)
	}
	if got := from.asked; len(got) != 3 || got[0] != "" || got[1] != "" || got[2] != "7" {
		t.Errorf("the API server was asked for versions %q; 0 would allow any version", got)
	}
}
