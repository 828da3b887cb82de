// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/quota"
)

// APIKeys watches the served teams' API keys.
type APIKeys struct {
	watched[v1alpha1.APIKey, *v1alpha1.APIKey]
}

// NewAPIKeys returns the watch of API keys, with the given indexers.
func NewAPIKeys(client rest.Interface, served configv1alpha1.Namespaces, indexers cache.Indexers, clock clock.PassiveClock) *APIKeys {
	indexers = maps.Clone(indexers)
	indexers[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	return &APIKeys{watch[v1alpha1.APIKey](client, "apikeys", served, indexers, clock)}
}

// Count returns the number of keys in a namespace, from the cache.
func (k *APIKeys) Count(namespace string) int {
	return len(k.by(cache.NamespaceIndex, namespace))
}

// List reads a namespace's keys from the Kubernetes API, so that new ones are included.
func (k *APIKeys) List(ctx context.Context, namespace string) ([]v1alpha1.APIKey, error) {
	var list v1alpha1.APIKeyList
	err := k.client.Get().Namespace(namespace).Resource(k.resource).Do(ctx).Into(&list)
	return list.Items, err
}

// Create stores a key.
func (k *APIKeys) Create(ctx context.Context, key *v1alpha1.APIKey) (*v1alpha1.APIKey, error) {
	return k.create(ctx, key)
}

// Update writes the difference between two states of a key, with optimistic concurrency.
func (k *APIKeys) Update(ctx context.Context, before, after *v1alpha1.APIKey) (*v1alpha1.APIKey, error) {
	return k.update(ctx, before, after)
}

// Touch stores when a key was last used.
func (k *APIKeys) Touch(ctx context.Context, namespace, name string, at time.Time) error {
	_, err := k.patch(ctx, namespace, name, map[string]any{"status": map[string]any{"lastUsedAt": v1alpha1.NewTime(at)}}, "status")
	return err
}

// Grants watches agents' grants in the served teams.
type Grants struct {
	watched[v1alpha1.OAuthGrant, *v1alpha1.OAuthGrant]
}

// NewGrants returns the watch of grants.
func NewGrants(client rest.Interface, served configv1alpha1.Namespaces, clock clock.PassiveClock) *Grants {
	return &Grants{watch[v1alpha1.OAuthGrant](client, "oauthgrants", served, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, clock)}
}

// Get returns a grant from the cache, or nil.
func (g *Grants) Get(namespace, name string) *v1alpha1.OAuthGrant {
	return g.cached(namespace, name)
}

// Live reads a grant from the Kubernetes API.
func (g *Grants) Live(ctx context.Context, namespace, name string) (*v1alpha1.OAuthGrant, error) {
	return g.kind.Get(ctx, namespace, name)
}

// List returns the cached grants in a namespace, in no particular order; "" means all namespaces.
func (g *Grants) List(namespace string) []*v1alpha1.OAuthGrant {
	if namespace != "" {
		return g.by(cache.NamespaceIndex, namespace)
	}
	return g.all()
}

// ListLive reads a namespace's grants from the Kubernetes API, so that recent changes are included.
func (g *Grants) ListLive(ctx context.Context, namespace string) ([]v1alpha1.OAuthGrant, error) {
	var list v1alpha1.OAuthGrantList
	err := g.client.Get().Namespace(namespace).Resource(g.resource).Do(ctx).Into(&list)
	return list.Items, err
}

// Create stores a grant, without its status.
func (g *Grants) Create(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	return g.create(ctx, grant)
}

// Update writes the difference between two states of a grant, with optimistic concurrency.
func (g *Grants) Update(ctx context.Context, before, after *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	return g.update(ctx, before, after)
}

// UpdateStatus stores a grant's status, with optimistic concurrency.
func (g *Grants) UpdateStatus(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	return g.in(grant.Namespace).UpdateStatus(ctx, grant, metav1.UpdateOptions{FieldManager: FieldOwner})
}

// Delete deletes a grant if it is unchanged; otherwise it returns a conflict.
func (g *Grants) Delete(ctx context.Context, of *v1alpha1.OAuthGrant) error {
	return g.in(of.Namespace).Delete(ctx, of.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &of.UID, ResourceVersion: &of.ResourceVersion},
	})
}

// Touch stores when a grant was last used.
func (g *Grants) Touch(ctx context.Context, namespace, name string, at time.Time) error {
	_, err := g.patch(ctx, namespace, name, map[string]any{"status": map[string]any{"lastUsedAt": v1alpha1.NewTime(at)}}, "status")
	return err
}

// namespaceOfTeam is the name of the index of teams by their namespace.
const namespaceOfTeam = "team-namespace"

// Teams watches the teams.
type Teams struct {
	watched[v1alpha1.Team, *v1alpha1.Team]
}

// NewTeams returns the watch of teams.
func NewTeams(client rest.Interface, clock clock.PassiveClock) *Teams {
	return &Teams{watch[v1alpha1.Team](client, "teams", nil, cache.Indexers{
		namespaceOfTeam: func(obj any) ([]string, error) {
			team, ok := obj.(*v1alpha1.Team)
			if !ok {
				return nil, fmt.Errorf("%T is not a Team", obj)
			}
			return []string{team.Spec.Namespace}, nil
		},
	}, clock)}
}

// Owner returns the team that owns a namespace, or nil. If several teams name it, the oldest owns it.
func (t *Teams) Owner(namespace string) (owner *v1alpha1.Team) {
	for _, team := range t.by(namespaceOfTeam, namespace) {
		if owner == nil || quota.Older(team, owner) {
			owner = team
		}
	}
	return owner
}

// Connections watches the served teams' connections.
type Connections struct {
	watched[v1alpha1.Connection, *v1alpha1.Connection]

	mu     sync.Mutex
	change chan struct{}
}

// NewConnections returns the watch of connections.
func NewConnections(client rest.Interface, served configv1alpha1.Namespaces, clock clock.PassiveClock) *Connections {
	c := &Connections{
		watched: watch[v1alpha1.Connection](client, "connections", served, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, clock),
		change:  make(chan struct{}),
	}
	c.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.changed,
		UpdateFunc: func(_, obj any) { c.changed(obj) },
		DeleteFunc: c.changed,
	})
	return c
}

// Get returns a connection from the cache, or nil.
func (c *Connections) Get(namespace, name string) *v1alpha1.Connection {
	return c.cached(namespace, name)
}

// List returns the cached connections in a namespace, in no particular order.
func (c *Connections) List(namespace string) []*v1alpha1.Connection {
	return c.by(cache.NamespaceIndex, namespace)
}

// Live reads a connection from the Kubernetes API.
func (c *Connections) Live(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error) {
	return c.kind.Get(ctx, namespace, name)
}

// RequestProbe requests a check of a connection from the manager. Afterwards the manager copies the token to
// status.lastHandledProbe. RequestProbe returns the resourceVersion of the stored request.
func (c *Connections) RequestProbe(ctx context.Context, namespace, name, token string) (uint64, error) {
	connection, err := c.annotate(ctx, namespace, name, v1alpha1.ProbeAnnotation, token)
	if err != nil {
		return 0, err
	}
	return postindex.ParseVersion(connection.ResourceVersion)
}

// Create stores a connection.
func (c *Connections) Create(ctx context.Context, connection *v1alpha1.Connection) (*v1alpha1.Connection, error) {
	return c.create(ctx, connection)
}

// Annotate sets annotations on the connection with this UID. A different object with the same name causes a conflict.
func (c *Connections) Annotate(ctx context.Context, of *v1alpha1.Connection, annotations map[string]string) error {
	_, err := c.patch(ctx, of.Namespace, of.Name, map[string]any{"metadata": map[string]any{"uid": of.UID, "annotations": annotations}})
	return err
}

// UseSecret changes the Secret of the connection with this UID, and sets annotations.
func (c *Connections) UseSecret(ctx context.Context, of *v1alpha1.Connection, secret string, annotations map[string]string) (*v1alpha1.Connection, error) {
	return c.patch(ctx, of.Namespace, of.Name, map[string]any{
		"metadata": map[string]any{"uid": of.UID, "annotations": annotations},
		"spec":     map[string]any{"credentialsSecretRef": map[string]any{"name": secret}},
	})
}

// DeleteFor deletes a connection on behalf of a user if it is unchanged; otherwise it returns a conflict. Beforehand,
// it records the user, as the admission policies require, and the time, which distinguishes this deletion from a later
// one.
func (c *Connections) DeleteFor(ctx context.Context, of *v1alpha1.Connection, person string, now time.Time) error {
	noted, err := c.patch(ctx, of.Namespace, of.Name, map[string]any{"metadata": map[string]any{
		"uid": of.UID, "resourceVersion": of.ResourceVersion, "annotations": map[string]string{
			v1alpha1.LastAuthorAnnotation: person, v1alpha1.DisconnectedAnnotation: now.UTC().Format(time.RFC3339),
		},
	}})
	if err != nil {
		return err
	}
	return c.in(of.Namespace).Delete(ctx, of.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &noted.UID, ResourceVersion: &noted.ResourceVersion},
	})
}

// Changed returns a channel that is closed at the next change to any connection.
func (c *Connections) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.change
}

func (c *Connections) changed(any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.change)
	c.change = make(chan struct{})
}
