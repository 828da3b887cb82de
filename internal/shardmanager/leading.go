// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shardmanager

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Leading is a process's manager for the controllers that only the leader runs. Its cache has the posts of all shards,
// and is filled when the process becomes the leader: the other replicas do not need them.
type Leading struct {
	ctrl.Manager

	cache  *splitCache
	client client.Client
}

// NewLeading returns a Leading. options are those of its cache of posts.
func NewLeading(parent ctrl.Manager, options cache.Options) (*Leading, error) {
	posts, err := newCache(parent, options, labels.Everything())
	if err != nil {
		return nil, err
	}
	if err := parent.Add(posts); err != nil {
		return nil, fmt.Errorf("cannot add the leader's cache of posts: %w", err)
	}
	split := &splitCache{Cache: parent.GetCache(), posts: posts, leads: true}
	return &Leading{Manager: parent, cache: split, client: &splitClient{parent.GetClient(), split}}, nil
}

// GetCache implements cluster.Cluster.
func (l *Leading) GetCache() cache.Cache { return l.cache }

// GetClient implements cluster.Cluster.
func (l *Leading) GetClient() client.Client { return l.client }

// GetFieldIndexer implements cluster.Cluster.
func (l *Leading) GetFieldIndexer() client.FieldIndexer { return l.cache }
