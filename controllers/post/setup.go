// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/lookup"
	"github.com/herald-social/herald/controllers/post/internal/stats"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/quota"
)

// SetupWithManager registers the reconciler and its watches. A reconciliation is triggered by changes to unfinished
// posts, by changes to inputs that posts wait for, by the loss of an input, by a Team that becomes the owner of the
// namespace, by clock jumps, and by gates that become free. If the reconciler delivers the posts of a shard, mgr runs
// only that, and another reconciler's SetupRecords registers the rest.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.objects.Watch(mgr); err != nil {
		return err
	}
	if err := lookup.IndexPosts(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err //nolint:wrapcheck // the error names the operation
	}
	ends := []func(){r.o.Metrics.Watch(&stats.Source{
		Objects: &r.objects, Clock: r.o.Clock, Settings: r.o.settings(), Platforms: r.o.Platforms, Uploads: r.preparer,
		Posts: r.queue.len, Turns: r.scheduler.Waiting, Claims: r.publisher.Claims.Size, Unsaved: r.records.Unsaved, LimitedApps: r.limits.LimitedApps,
		Elected: mgr.Elected(), Stopping: r.o.Stopping,
	})}
	if r.o.SuspendAll != nil {
		ends = append(ends, r.o.SuspendAll.Subscribe(r.queue.suspendAllChanged))
	}
	if r.publisher.Groups != nil {
		if err := errors.Join(mgr.Add(r.publisher.Groups), mgr.Add(r.crowds)); err != nil {
			return fmt.Errorf("cannot set up the groups of posts: %w", err)
		}
	}
	if err := mgr.Add(r.prefetcher); err != nil {
		return fmt.Errorf("cannot set up the token prefetcher: %w", err)
	}
	if r.o.Jumps != nil {
		ends = append(ends, r.o.Jumps.Subscribe(func() { r.queue.clockJumped(&r.objects) }))
	}
	if err := watches(r, mgr).Complete(r); err != nil {
		return fmt.Errorf("cannot set up the post controller: %w", err)
	}
	if r.o.Shard == nil {
		return errors.Join(setupOnce(r, mgr), r.assistant.setupWithManager(mgr))
	}
	return errors.Join(r.archiver.SetupWithManager(mgr, false), mgr.Add(unsubscriber(ends)))
}

// watches returns the controller with its watches.
func watches(r *Reconciler, mgr ctrl.Manager) *builder.Builder {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("post").
		For(&v1alpha1.Post{}).
		Watches(&v1alpha1.Connection{}, r.queue.enqueueForInput(kindConnection)).
		Watches(&v1alpha1.Connection{}, r.queue.enqueueAppLimited(r.limits)).
		Watches(&v1alpha1.Connection{}, r.queue.enqueueDependents(), builder.WithPredicates(becameUnusable())).
		Watches(&v1alpha1.Media{}, r.queue.enqueueForInput(kindMedia)).
		Watches(&v1alpha1.Media{}, r.queue.enqueueDependents(), builder.WithPredicates(becameUnusable())).
		Watches(&v1alpha1.Team{}, r.queue.enqueueSuspended(), builder.WithPredicates(quota.SuspensionEnded())).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.o.Namespaces, r.o.Client, func() client.ObjectList { return &v1alpha1.PostList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WatchesRawSource(source.Func(r.queue.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.o.MaxConcurrentReconciles, ReconciliationTimeout: pacing.PostTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "post"))
	if r.o.Shard != nil {
		return b.Watches(&v1alpha1.Post{}, r.sharding.openAfterCalls())
	}
	return b.Watches(&v1alpha1.Team{}, r.archiver.Backfill(), builder.WithPredicates(quota.OwnershipChanged()))
}

// setupOnce registers what an installation has only once, on its leader: the parts that save the records of finished
// posts and release deleted ones. It also adds the indexes of connections that all reconcilers of a process need.
func setupOnce(r *Reconciler, mgr ctrl.Manager) error {
	indexer := mgr.GetFieldIndexer()
	return errors.Join(limits.Index(context.Background(), indexer), lookup.IndexConnections(context.Background(), indexer),
		r.archiver.SetupWithManager(mgr, true), r.finalizers.SetupWithManager(mgr))
}

// SetupRecords is SetupWithManager for a process whose posts are delivered by the reconcilers of its shards.
func (r *Reconciler) SetupRecords(mgr ctrl.Manager) error {
	// The handler enqueues the teams in the archiver.
	nothing := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("post-records").
		Watches(&v1alpha1.Team{}, r.archiver.Backfill(), builder.WithPredicates(quota.OwnershipChanged())).
		Complete(nothing); err != nil {
		return fmt.Errorf("cannot set up the watch for teams whose finished posts have no record: %w", err)
	}
	return setupOnce(r, mgr)
}

// unsubscriber returns a runnable that ends subscriptions when a shard was given up.
func unsubscriber(ends []func()) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		for _, end := range ends {
			end()
		}
		return nil
	})
}
