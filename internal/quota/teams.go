// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// byNamespace is the index of teams by the namespace that they want.
const byNamespace = "spec.namespace"

// Teams finds the teams of namespaces in the manager's cache. The apiserver has an
// index of its own.
type Teams struct{ cache client.Reader }

// NewTeams sets up the index of teams and returns Teams that reads from cache.
func NewTeams(ctx context.Context, cache client.Reader, indexer client.FieldIndexer) (*Teams, error) {
	err := indexer.IndexField(ctx, &v1alpha1.Team{}, byNamespace, func(obj client.Object) []string {
		team, ok := obj.(*v1alpha1.Team)
		if !ok {
			return nil
		}
		return []string{team.Spec.Namespace}
	})
	if err != nil {
		return nil, fmt.Errorf("cannot index the teams by their namespace: %w", err)
	}
	return &Teams{cache: cache}, nil
}

// Owner returns the team that owns a namespace, or nil: the oldest of those that
// want it.
func (t *Teams) Owner(ctx context.Context, namespace string) (*v1alpha1.Team, error) {
	var found v1alpha1.TeamList
	if err := t.cache.List(ctx, &found, client.MatchingFields{byNamespace: namespace}); err != nil {
		return nil, fmt.Errorf("cannot look up the team of namespace %q: %w", namespace, err)
	}
	var owner *v1alpha1.Team
	for i := range found.Items {
		if team := &found.Items[i]; owner == nil || Older(team, owner) {
			owner = team
		}
	}
	return owner, nil
}

// Older reports whether team a is older than b, and so owns a namespace that both
// want. Of two that were created within the same second, the first by name is.
func Older(a, b *v1alpha1.Team) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
