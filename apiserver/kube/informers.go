// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
)

// namespaceOfTeam is the name of the index of teams by the namespace they own.
const namespaceOfTeam = "team-namespace"

// newInformer watches all objects of a resource, without the record of who
// wrote which field, which is not read here.
func newInformer(client rest.Interface, resource string, example runtime.Object, indexers cache.Indexers) (cache.SharedIndexInformer, error) {
	source := cache.NewListWatchFromClient(client, resource, "", fields.Everything())
	informer := cache.NewSharedIndexInformer(source, example, 0, indexers)
	err := informer.SetTransform(func(obj any) (any, error) {
		if object, err := meta.Accessor(obj); err == nil {
			object.SetManagedFields(nil)
		}
		return obj, nil
	})
	if err != nil {
		return nil, fmt.Errorf("set up the watch of %s: %w", resource, err)
	}
	return informer, nil
}

// APIKeys watches the API keys of every team.
type APIKeys struct {
	cache.SharedIndexInformer
	client rest.Interface
}

// NewAPIKeys returns the watch of API keys with the indexers by which
// they are looked up.
func NewAPIKeys(client rest.Interface, indexers cache.Indexers) (*APIKeys, error) {
	informer, err := newInformer(client, "apikeys", &v1alpha1.APIKey{}, indexers)
	if err != nil {
		return nil, err
	}
	return &APIKeys{SharedIndexInformer: informer, client: client}, nil
}

// Touch stores when a key was last used.
func (k *APIKeys) Touch(ctx context.Context, namespace, name string, at time.Time) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"lastUsedAt": v1alpha1.NewTime(at)}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	return k.client.Patch(types.MergePatchType).
		Namespace(namespace).Resource("apikeys").Name(name).SubResource("status").
		Body(patch).
		Do(ctx).Error()
}

// Teams watches the teams.
type Teams struct{ cache.SharedIndexInformer }

// NewTeams returns the watch of teams.
func NewTeams(client rest.Interface) (*Teams, error) {
	informer, err := newInformer(client, "teams", &v1alpha1.Team{}, cache.Indexers{
		namespaceOfTeam: func(obj any) ([]string, error) {
			team, ok := obj.(*v1alpha1.Team)
			if !ok {
				return nil, fmt.Errorf("%T is not a Team", obj)
			}
			return []string{team.Spec.Namespace}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &Teams{informer}, nil
}

// Owner returns the team that owns a namespace, or nil. Of several that name
// it, the oldest does. The team is shared: the caller does not change it.
func (t *Teams) Owner(namespace string) *v1alpha1.Team {
	found, err := t.GetIndexer().ByIndex(namespaceOfTeam, namespace)
	if err != nil {
		return nil
	}
	var owner *v1alpha1.Team
	for _, obj := range found {
		team, ok := obj.(*v1alpha1.Team)
		if ok && (owner == nil || quota.Older(team, owner)) {
			owner = team
		}
	}
	return owner
}
