// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

const connectionsResource = "connections"

// Connections watches the connections of every team. What its methods return
// is shared: the caller does not change it.
type Connections struct {
	cache.SharedIndexInformer
	client rest.Interface

	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{}
}

// NewConnections returns the watch of connections.
func NewConnections(client rest.Interface) (*Connections, error) {
	informer, err := newInformer(client, connectionsResource, &v1alpha1.Connection{},
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err != nil {
		return nil, err
	}
	c := &Connections{SharedIndexInformer: informer, client: client, waiting: map[string]map[chan struct{}]struct{}{}}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.changed,
		UpdateFunc: func(_, obj any) { c.changed(obj) },
		DeleteFunc: c.changed,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the watch of connections: %w", err)
	}
	return c, nil
}

// Get returns a connection from memory, or nil.
func (c *Connections) Get(namespace, name string) *v1alpha1.Connection {
	obj, found, err := c.GetIndexer().GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return nil
	}
	connection, ok := obj.(*v1alpha1.Connection)
	if !ok {
		return nil
	}
	return connection
}

// List returns the connections of a namespace from memory, in no order.
func (c *Connections) List(namespace string) []*v1alpha1.Connection {
	found, err := c.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil
	}
	out := make([]*v1alpha1.Connection, 0, len(found))
	for _, obj := range found {
		if connection, ok := obj.(*v1alpha1.Connection); ok {
			out = append(out, connection)
		}
	}
	return out
}

// Live reads a connection from the Kubernetes API itself.
func (c *Connections) Live(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error) {
	connection := &v1alpha1.Connection{}
	err := c.client.Get().Namespace(namespace).Resource(connectionsResource).Name(name).Do(ctx).Into(connection)
	if err != nil {
		return nil, err
	}
	return connection, nil
}

// RequestProbe asks the manager to check a connection now; it echoes the token
// in status.lastHandledProbe once it has. The result is the resourceVersion
// with which the request was stored.
func (c *Connections) RequestProbe(ctx context.Context, namespace, name, token string) (uint64, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{v1alpha1.ProbeAnnotation: token}},
	})
	if err != nil {
		return 0, fmt.Errorf("encode a patch: %w", err)
	}
	connection := &v1alpha1.Connection{}
	err = c.client.Patch(types.MergePatchType).
		Namespace(namespace).Resource(connectionsResource).Name(name).
		Body(patch).
		Do(ctx).Into(connection)
	if err != nil {
		return 0, err
	}
	return postindex.ParseVersion(connection.ResourceVersion)
}

// Changes returns a channel that gets a value, never more than one ahead, after
// each change of a connection, until stop is called.
func (c *Connections) Changes(namespace, name string) (changes <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	key := namespace + "/" + name
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] == nil {
		c.waiting[key] = map[chan struct{}]struct{}{}
	}
	c.waiting[key][ch] = struct{}{}
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting[key], ch)
		if len(c.waiting[key]) == 0 {
			delete(c.waiting, key)
		}
	}
}

func (c *Connections) changed(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.waiting[key] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
