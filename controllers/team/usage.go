// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
)

const (
	// sweepEvery is the interval between sweeps of a team's Usages, and showEvery is the longest interval between updates
	// of the usage in a team's status.
	sweepEvery = 10 * time.Minute
	showEvery  = 5 * time.Minute
	// showDelay delays the display of counted posts to X, which limits the writes for a team that publishes constantly.
	showDelay = 20 * time.Second
)

func (r *Reconciler) tracksUsage() bool { return r.Owner != nil && r.Quota != nil }

func (r *Reconciler) teamOf(ctx context.Context, obj client.Object) []reconcile.Request {
	team, err := r.Owner(ctx, obj.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the team of a changed object", "namespace", obj.GetNamespace())
		return nil
	}
	if team == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(team)}}
}

// enqueueCounted enqueues the team of a changed Usage after showDelay, so that several changes share one write.
func (r *Reconciler) enqueueCounted() handler.EventHandler {
	soon := func(ctx context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, team := range r.teamOf(ctx, obj) {
			queue.AddAfter(team, showDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(ctx, e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			soon(ctx, e.Object, queue)
		},
	}
}

var countsXPosts = predicate.NewPredicateFuncs(func(obj client.Object) bool {
	return strings.HasPrefix(obj.GetName(), v1alpha1.ResourceXPosts+"-")
})

// syncUsage sweeps the team's Usages if due, and returns its usage. Values that cannot be read are left unchanged.
func (r *Reconciler) syncUsage(ctx context.Context, team *v1alpha1.Team) *v1alpha1.TeamUsage {
	log := ctrl.LoggerFrom(ctx)
	shown := &v1alpha1.TeamUsage{}
	if team.Status.Usage != nil {
		shown = team.Status.Usage.DeepCopy()
	}
	var connections v1alpha1.ConnectionList
	if err := r.Client.List(ctx, &connections, client.InNamespace(team.Spec.Namespace)); err != nil {
		log.Error(err, "cannot count the team's connections")
	} else {
		shown.ConnectedAccounts = 0
		for i := range connections.Items {
			if c := &connections.Items[i]; !c.Spec.Disabled && c.DeletionTimestamp.IsZero() {
				shown.ConnectedAccounts++
			}
		}
	}
	if uses := r.used(ctx, team); uses != nil {
		shown.Budget = uses
		r.Metrics.record(team.Name, uses)
	}
	limited := plan.LimitsOf(team).XPosts > 0
	if !limited {
		shown.XPostsThisMonth = nil
	}
	now := r.Clock.Now()
	if r.usages.due(team.Name, now) {
		if err := r.usages.sweep(ctx, team, now); err != nil {
			log.Error(err, "cannot sweep the Usages of the team; trying again later")
		}
	}
	if !limited {
		return shown
	}
	stored, err := r.Quota.Read(ctx, team.Spec.Namespace, plan.XPosts(now))
	if err != nil {
		log.Error(err, "cannot count the posts to X of the team; trying again later")
	} else {
		shown.XPostsThisMonth = &stored.Status.Used
	}
	return shown
}

// usageSweeper repairs the Usages of teams, which a crash may have left with wrong entries, and deletes expired ones.
type usageSweeper struct {
	client    client.Client
	apiReader client.Reader
	quota     *quota.UsageStore
	// swept holds the time of each team's last sweep, by name.
	swept sync.Map
}

func (s *usageSweeper) due(team string, now time.Time) bool {
	last, ok := s.swept.Load(team)
	at, isTime := last.(time.Time)
	return !ok || !isTime || now.Sub(at) >= sweepEvery
}

// forget makes the team's next sweep due.
func (s *usageSweeper) forget(team string) { s.swept.Delete(team) }

// sweep reconciles a team's Usages with its posts, and deletes expired ones. An error does not stop the others.
func (s *usageSweeper) sweep(ctx context.Context, team *v1alpha1.Team, now time.Time) error {
	defer s.swept.Store(team.Name, now)
	namespace := team.Spec.Namespace
	var usages v1alpha1.UsageList
	if err := s.apiReader.List(ctx, &usages, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list the Usages of namespace %q: %w", namespace, err)
	}
	var connections v1alpha1.ConnectionList
	if err := s.client.List(ctx, &connections, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list the team's connections: %w", err)
	}
	known := make(map[string]*v1alpha1.Connection, len(connections.Items))
	for i := range connections.Items {
		known[connections.Items[i].Name] = &connections.Items[i]
	}
	find := func(name string) *v1alpha1.Connection { return known[name] }
	var errs []error
	for i := range usages.Items {
		errs = append(errs, s.sweepUsage(ctx, &usages.Items[i], find, now))
	}
	return errors.Join(errs...)
}

func (s *usageSweeper) sweepUsage(ctx context.Context, swept *v1alpha1.Usage, find plan.Connections, now time.Time) error {
	if swept.Spec.Resource == v1alpha1.ResourceBudget {
		return nil // only the apiserver counts it, and it never expires
	}
	if !usage.Expired(&swept.Spec, now) {
		// The entries are read before any post. A concurrent change makes the write conflict, and then they are read again.
		err := s.quota.Amend(ctx, swept.Namespace, swept.Spec, func(stored *v1alpha1.Usage) error {
			usage.Prune(stored, now)
			return s.repair(ctx, stored, find, now)
		})
		if err != nil {
			return err
		}
		swept, err = s.quota.Read(ctx, swept.Namespace, swept.Spec)
		if err != nil || len(swept.Status.Entries) > 0 {
			return err
		}
	}
	// A process that counts in this Usage concurrently wins.
	err := s.client.Delete(ctx, swept, client.Preconditions{UID: &swept.UID, ResourceVersion: &swept.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cannot delete Usage %s/%s: %w", swept.Namespace, swept.Name, err)
	}
	return nil
}

func (s *usageSweeper) repair(ctx context.Context, stored *v1alpha1.Usage, find plan.Connections, now time.Time) error {
	for _, name := range usage.OpenPosts(stored) {
		post, err := s.postOf(ctx, stored, name, find)
		switch {
		case apierrors.IsNotFound(err):
			usage.Orphan(stored, name, now)
		case err != nil:
			return fmt.Errorf("cannot read post %q: %w", name, err)
		default:
			usage.Settle(stored, plan.UsesOfStored(&stored.Spec, post, find, 0))
		}
	}
	return nil
}

// postOf reads a post from the cache. If the cached post would change an entry, it reads the post from the API server.
func (s *usageSweeper) postOf(ctx context.Context, stored *v1alpha1.Usage, name string, find plan.Connections) (*v1alpha1.Post, error) {
	key := types.NamespacedName{Namespace: stored.Namespace, Name: name}
	var post v1alpha1.Post
	if err := s.client.Get(ctx, key, &post); err == nil {
		trial := stored.DeepCopy()
		usage.Settle(trial, plan.UsesOfStored(&stored.Spec, &post, find, 0))
		if v1alpha1.SemanticEqual(trial.Status.Entries, stored.Status.Entries) {
			return &post, nil
		}
	}
	var live v1alpha1.Post
	return &live, s.apiReader.Get(ctx, key, &live)
}
