// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shard assigns teams to shards, moves them, and labels their posts; see docs/adr/0035. It runs on the leader.
package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting/placement"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams/status,verbs=patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=get;list;watch

// Options configures the Reconciler. All fields are required.
type Options struct {
	// Client reads from the cache and writes to the API server, and APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.PassiveClock
	// Shards is the number of shards.
	Shards int
	// Owner returns the team that owns a namespace, or nil.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Unfinished returns the number of unfinished posts in a namespace.
	Unfinished func(namespace string) int64
	// SuspensionRetention is how long a past suspension of a team is kept.
	SuspensionRetention time.Duration
	// Namespaces are the namespaces of this installation.
	Namespaces configv1alpha1.Namespaces
}

// Reconciler assigns teams to shards.
type Reconciler struct{ Options }

// New returns a Reconciler. It returns an error if a required option is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Clock == nil || o.Shards < 2 || o.Owner == nil || o.Unfinished == nil {
		return nil, errors.New("the shard reconciler needs Client, APIReader, Clock, Owner, Unfinished and more than one shard")
	}
	return &Reconciler{o}, nil
}

const (
	// maxLabelled limits the teams whose posts are labelled concurrently.
	maxLabelled = 8
	// conflictPause is the requeue delay after a conflict, so that the cache can catch up.
	conflictPause = 50 * time.Millisecond
)

// all is the request that assigns all teams: a team's shard depends on the others.
var all = reconcile.Request{}

// SetupWithManager adds two controllers to a manager: one assigns teams when a team or the account of a connection
// changes, and the other labels the posts of teams that were assigned or moved, and posts with a wrong label.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	every := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{all} })
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("shard-assignment").
		Watches(&v1alpha1.Team{}, every, builder.WithPredicates(placementChanged)).
		Watches(&v1alpha1.Connection{}, every, builder.WithPredicates(accountChanged)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, ReconciliationTimeout: pacing.TeamTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "shard-assignment")).
		Complete(reconcile.Func(r.assignTeams)); err != nil {
		return fmt.Errorf("cannot set up the controller that assigns teams to shards: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("shard-labels").
		Watches(&v1alpha1.Team{}, handler.EnqueueRequestsFromMapFunc(ownNamespace), builder.WithPredicates(placementChanged)).
		WatchesMetadata(&v1alpha1.Post{}, handler.EnqueueRequestsFromMapFunc(r.namespaceToLabel)).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxLabelled, ReconciliationTimeout: pacing.TeamTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "shard-labels")).
		Complete(reconcile.Func(r.labelNamespace)); err != nil {
		return fmt.Errorf("cannot set up the controller that labels posts: %w", err)
	}
	return nil
}

// placementChanged passes new and deleted Teams, and changes to their shards.
var placementChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Team)
		after, is := e.ObjectNew.(*v1alpha1.Team)
		return ok && is && (before.UID != after.UID || before.Status.Shard != after.Status.Shard || before.Moving() != after.Moving())
	},
}

// accountChanged passes changes to the account of a Connection, and its first confirmation.
var accountChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Connection)
		after, is := e.ObjectNew.(*v1alpha1.Connection)
		return ok && is && (accountOf(before) != accountOf(after))
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

func namespaceRequest(namespace string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: namespace}}}
}

func ownNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	if team, ok := obj.(*v1alpha1.Team); ok {
		return namespaceRequest(team.Spec.Namespace)
	}
	return nil
}

// namespaceToLabel returns the namespace of a post whose label is not its team's shard or, without a team, not a shard.
func (r *Reconciler) namespaceToLabel(ctx context.Context, obj client.Object) []reconcile.Request {
	team, err := r.Owner(ctx, obj.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the team of a post whose shard may have changed", "namespace", obj.GetNamespace())
		return nil
	}
	label := obj.GetLabels()[v1alpha1.ShardLabel]
	if team == nil && slices.Contains(placement.Names(r.Shards), label) || team != nil && (team.Status.Shard == "" || team.Status.Shard == label) {
		return nil
	}
	return namespaceRequest(obj.GetNamespace())
}
