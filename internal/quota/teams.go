// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

// byNamespace is the index of teams by the namespace that they claim.
const byNamespace = "spec.namespace"

// Teams finds the teams that own namespaces in the manager's cache. The apiserver has its own index.
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

// Owner returns the team that owns a namespace: the oldest of those that claim it, or nil.
func (t *Teams) Owner(ctx context.Context, namespace string) (*v1alpha1.Team, error) {
	return t.owner(ctx, namespace)
}

func (t *Teams) owner(ctx context.Context, namespace string, options ...client.ListOption) (*v1alpha1.Team, error) {
	var found v1alpha1.TeamList
	if err := t.cache.List(ctx, &found, append(options, client.MatchingFields{byNamespace: namespace})...); err != nil {
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

// Claimants returns the teams that claim a namespace. They belong to the cache and must not be modified.
func (t *Teams) Claimants(ctx context.Context, namespace string) ([]v1alpha1.Team, error) {
	var found v1alpha1.TeamList
	if err := t.cache.List(ctx, &found, client.MatchingFields{byNamespace: namespace}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the teams that claim namespace %q: %w", namespace, err)
	}
	return found.Items, nil
}

// Owned reports whether a team owns a namespace, so that Herald works there: a team claims it and is ready.
func (t *Teams) Owned(ctx context.Context, namespace string) (bool, error) {
	owner, err := t.owner(ctx, namespace, client.UnsafeDisableDeepCopy)
	return owns(owner), err
}

// owns reports whether a team owns the namespace that it claims, which it does until its deletion is complete.
func owns(team *v1alpha1.Team) bool {
	return team != nil && conditions.IsReady(team.Status.Conditions)
}

// Suspension returns whether a namespace's team is suspended, and its recent suspensions. A namespace without a team is
// not suspended. The list must not be modified.
func (t *Teams) Suspension(ctx context.Context, namespace string) (suspended bool, recent []v1alpha1.Suspension, err error) {
	owner, err := t.owner(ctx, namespace, client.UnsafeDisableDeepCopy)
	if err != nil || owner == nil {
		return false, nil, err
	}
	return owner.Suspended(), owner.Status.Suspensions, nil
}

// Media returns the media settings of a namespace's team, or the zero value if it has no team.
func (t *Teams) Media(ctx context.Context, namespace string) (v1alpha1.TeamMedia, error) {
	owner, err := t.owner(ctx, namespace, client.UnsafeDisableDeepCopy)
	if err != nil || owner == nil {
		return v1alpha1.TeamMedia{}, err
	}
	return owner.Spec.Media, nil
}

// SuspensionEnded passes only changes to Teams that end a suspension, or assign the team to a shard. A deleted team is
// not suspended.
func SuspensionEnded() predicate.Predicate {
	suspended := func(obj client.Object) bool {
		team, ok := obj.(*v1alpha1.Team)
		return ok && team.Suspended()
	}
	shard := func(obj client.Object) string {
		if team, ok := obj.(*v1alpha1.Team); ok {
			return team.Status.Shard
		}
		return ""
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return suspended(e.ObjectOld) && !suspended(e.ObjectNew) || shard(e.ObjectOld) != shard(e.ObjectNew)
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return suspended(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// OwnershipChanged passes only changes to Teams that acquire or lose their namespace. It exists because Teams are
// written often. A Team that is seen for the first time does not own anything yet, unless the watch was interrupted
// while it was created and became the owner. The initial list is not passed, because all objects are reconciled at
// startup.
func OwnershipChanged() predicate.Predicate {
	ownsObject := func(obj client.Object) bool {
		team, _ := obj.(*v1alpha1.Team)
		return owns(team)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList && ownsObject(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return ownsObject(e.ObjectOld) != ownsObject(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return ownsObject(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// InNamespace enqueues the objects of one kind in a Team's namespace, if the namespace is served. cache holds them, and
// empty returns an empty list of the kind.
func InNamespace(served configv1alpha1.Namespaces, cache client.Reader, empty func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		team, ok := obj.(*v1alpha1.Team)
		if !ok || !served.Include(team.Spec.Namespace) {
			return nil
		}
		found := empty()
		err := cache.List(ctx, found, client.InNamespace(team.Spec.Namespace), client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(found, func(item runtime.Object) error {
				object, err := meta.Accessor(item)
				if err == nil {
					requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName()}})
				}
				return err
			})
		}
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot list the objects in the namespace of a changed team", "team", team.Name, "namespace", team.Spec.Namespace)
		}
		return requests
	})
}

// Older reports whether team a is older than b, and so owns a namespace that both claim. Names break ties.
func Older(a, b *v1alpha1.Team) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
