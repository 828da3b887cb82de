// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shardmanager runs controllers for the posts of one shard within a manager's process. Its Manager has a cache
// of its own for these posts, and shares the rest with the process's manager. It can be stopped while the process goes
// on.
package shardmanager

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

// Manager runs the controllers of one shard.
type Manager struct {
	ctrl.Manager

	posts     cache.Cache
	cache     *splitCache
	client    client.Client
	runnables []manager.Runnable
	elected   chan struct{}
}

// New returns a Manager for the unfinished posts of a shard. parent is the process's manager or its Leading, and options
// are those of its cache.
func New(parent ctrl.Manager, options cache.Options, shard string) (*Manager, error) {
	if leading, ok := parent.(*Leading); ok {
		parent = leading.Manager // only the leader fills the cache of a Leading
	}
	options.NewInformer = newFreshInformer
	posts, err := newCache(parent, options, labels.SelectorFromSet(labels.Set{v1alpha1.ShardLabel: shard}))
	if err != nil {
		return nil, err
	}
	split := &splitCache{Cache: parent.GetCache(), posts: posts}
	m := &Manager{Manager: parent, posts: posts, cache: split, client: &splitClient{parent.GetClient(), split}, elected: make(chan struct{})}
	close(m.elected)
	return m, nil
}

// newCache returns a cache of the unfinished posts that a label selector selects.
func newCache(parent ctrl.Manager, options cache.Options, selected labels.Selector) (cache.Cache, error) {
	options.Scheme, options.Mapper, options.HTTPClient = parent.GetScheme(), parent.GetRESTMapper(), parent.GetHTTPClient()
	options.ByObject = map[client.Object]cache.ByObject{&v1alpha1.Post{}: {Field: kubeclient.UnfinishedPosts(), Label: selected}}
	posts, err := cache.New(parent.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("cannot set up a cache of posts: %w", err)
	}
	return posts, nil
}

// GetCache implements cluster.Cluster.
func (m *Manager) GetCache() cache.Cache { return m.cache }

// GetClient implements cluster.Cluster.
func (m *Manager) GetClient() client.Client { return m.client }

// GetFieldIndexer implements cluster.Cluster. It indexes only posts: other kinds have the indexes of the process's
// manager.
func (m *Manager) GetFieldIndexer() client.FieldIndexer { return m.cache }

// Elected implements manager.Manager: the holder of a shard works.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// Add implements manager.Manager.
func (m *Manager) Add(runnable manager.Runnable) error {
	m.runnables = append(m.runnables, runnable)
	return nil
}

// GetControllerOptions implements manager.Manager. Several shards have controllers of the same name, which start when
// their caches are filled.
func (m *Manager) GetControllerOptions() ctrlconfig.Controller {
	options := m.Manager.GetControllerOptions()
	options.SkipNameValidation, options.EnableWarmup = new(true), new(false)
	return options
}

// Start fills the cache and runs everything that was added until ctx is done. It returns once all of it has ended; the
// cache can be read until then.
func (m *Manager) Start(ctx context.Context) error {
	filled, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer m.cache.removeHandlers()
	cached := make(chan error, 1)
	go func() { cached <- m.posts.Start(filled) }()
	group, ctx := errgroup.WithContext(ctx)
	for _, runnable := range m.runnables {
		group.Go(func() error { return runnable.Start(ctx) })
	}
	err := group.Wait()
	stop()
	if cacheErr := <-cached; err == nil {
		err = cacheErr
	}
	if err != nil {
		return fmt.Errorf("the posts of a shard are no longer delivered: %w", err)
	}
	return nil
}
