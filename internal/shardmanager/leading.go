// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shardmanager

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Leading is a process's manager for the controllers that only the leader runs. Its cache has the posts of all shards,
// and is filled when the process becomes the leader: the other replicas do not need them.
type Leading struct {
	ctrl.Manager

	cache  *splitCache
	client client.Client
	// stopping is done once the process stops.
	stopping context.Context //nolint:containedctx // the runnables get it when they start
}

// NewLeading returns a Leading. Its runnables end when ctx is done, which must be the context of the process's manager.
// options are those of its cache of posts.
func NewLeading(ctx context.Context, parent ctrl.Manager, options cache.Options) (*Leading, error) {
	posts, err := newCache(parent, options, labels.Everything())
	if err != nil {
		return nil, err
	}
	if err := parent.Add(posts); err != nil {
		return nil, fmt.Errorf("cannot add the leader's cache of posts: %w", err)
	}
	split := &splitCache{Cache: parent.GetCache(), posts: posts, leads: true}
	return &Leading{Manager: parent, cache: split, client: &splitClient{parent.GetClient(), split}, stopping: ctx}, nil
}

// GetCache implements cluster.Cluster.
func (l *Leading) GetCache() cache.Cache { return l.cache }

// GetClient implements cluster.Cluster.
func (l *Leading) GetClient() client.Client { return l.client }

// GetFieldIndexer implements cluster.Cluster.
func (l *Leading) GetFieldIndexer() client.FieldIndexer { return l.cache }

// Add implements manager.Manager.
func (l *Leading) Add(runnable manager.Runnable) error {
	if _, ok := runnable.(interface{ GetCache() cache.Cache }); ok {
		return l.Manager.Add(runnable) //nolint:wrapcheck // it is a manager
	}
	if where, ok := runnable.(manager.LeaderElectionRunnable); ok && !where.NeedLeaderElection() {
		return l.Manager.Add(runnable) //nolint:wrapcheck // it is a manager
	}
	r := led{runnable, l}
	if warm, ok := runnable.(warmer); ok {
		return l.Manager.Add(&warmLed{r, warm}) //nolint:wrapcheck // it is a manager
	}
	return l.Manager.Add(&r) //nolint:wrapcheck // it is a manager
}

// led is a runnable that runs while the process leads and until it stops. A stopping process releases the leader's Lease
// at once, but its manager stops the leader's runnables only after all others, and so after the running calls of the
// shards. Until then, two leaders would write the same objects.
type led struct {
	manager.Runnable

	leading *Leading
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*led) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. If it returned an error while the process stops, the manager could return that
// instead of the reason of the stop.
func (r *led) Start(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	detach := context.AfterFunc(r.leading.stopping, stop) //nolint:contextcheck // it is the second context that ends the runnable
	defer detach()
	err := r.Runnable.Start(ctx)
	if r.leading.stopping.Err() == nil {
		return err //nolint:wrapcheck // it is that of the runnable
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		r.leading.GetLogger().Error(err, "a part of the leader ended with an error while the process stops")
	}
	return nil
}

// warmer is the interface of a runnable that prepares to lead; the manager has an unexported one.
type warmer interface {
	Warmup(ctx context.Context) error
}

// warmLed is a led runnable that also prepares to lead.
type warmLed struct {
	led
	warmer
}
