// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/lease"
	"github.com/herald-social/herald/cmd/herald/internal/shards"
	"github.com/herald-social/herald/controllers/admission"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/controllers/shard"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/shardmanager"
)

// errShardsWithoutLeases is returned if a process that does not compete for the leader's Lease is to share shards.
var errShardsWithoutLeases = errors.New("delivery.shards is above 1, but --leader-elect is false; the leader's Lease states the number of shards: remove the flag, or set delivery.shards to 1")

// everywhere is a runnable that runs on every replica.
type everywhere struct{ manager.Runnable }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// whereDelivered returns a runnable that the delivery of posts depends on. It runs where posts are delivered: on the
// leader or, with several shards, on every replica.
func whereDelivered(c *configv1alpha1.ManagerConfiguration, runnable manager.Runnable) manager.Runnable {
	if c.Delivery.Shards <= 1 {
		return runnable
	}
	return everywhere{runnable}
}

// leadingManager returns the manager for the controllers that only the leader runs. With several shards, its posts have a
// cache of their own, without their contents: the replicas' other controllers need only those of their shards. ctx is that
// of the manager.
func leadingManager(ctx context.Context, mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration) (ctrl.Manager, error) {
	if c.Delivery.Shards <= 1 {
		return mgr, nil
	}
	options := cacheOptions(c)
	options.DefaultTransform = kubeclient.TransformForLeader
	return shardmanager.NewLeading(ctx, mgr, options) //nolint:wrapcheck // it names the operation
}

// newTally counts the unfinished posts in a cache. With several shards, the cache holds only their metadata.
func newTally(ctx context.Context, posts cache.Cache, c *configv1alpha1.ManagerConfiguration) (*admission.Tally, error) {
	if c.Delivery.Shards > 1 {
		return admission.NewMetadataTally(ctx, posts)
	}
	return admission.NewTally(ctx, posts)
}

// setupAssignment adds the controller that assigns teams to shards, if there are several.
func setupAssignment(ctx context.Context, mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, teams *quota.Teams, now *apiclock.Clock) error {
	if c.Delivery.Shards <= 1 {
		return nil
	}
	tally, err := newTally(ctx, mgr.GetCache(), c)
	if err != nil {
		return err //nolint:wrapcheck // it names the operation
	}
	assigner, err := shard.New(shard.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Shards: c.Delivery.Shards, Owner: teams.Owner, Unfinished: tally.Unfinished,
		SuspensionRetention: c.Delivery.StartingDeadline.Duration, Namespaces: c.Namespaces,
	})
	return add(mgr, assigner, err)
}

// shardDelivery delivers the posts of the shards that this process holds.
type shardDelivery struct {
	mgr     ctrl.Manager
	config  *configv1alpha1.ManagerConfiguration
	posts   post.Options
	teams   *quota.Teams
	replica *shards.Replica
	log     logr.Logger
	// running are the deliveries, including those of shards that were given up, until their calls are recorded.
	running sync.WaitGroup
}

// newShardDelivery returns the part of a process that shares the shards. identity is that of the process.
func newShardDelivery(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, namespace, identity string, posts post.Options, teams *quota.Teams) (*shardDelivery, error) {
	d := &shardDelivery{mgr: mgr, config: c, posts: posts, teams: teams, log: mgr.GetLogger().WithName("shards")}
	d.posts.MaxConcurrentReconciles, d.posts.MaxUploads = shareOf(c, posts.MaxConcurrentReconciles), shareOf(c, posts.MaxUploads)
	leases, watches, err := leaseClients(mgr, c)
	if err != nil {
		return nil, err
	}
	d.replica = shards.New(shards.Options{
		Client: leases, Watches: watches, Namespace: namespace, Release: c.ReleaseName, Leader: leaseOf(c.ReleaseName), Identity: identity,
		Shards: c.Delivery.Shards, Stated: lease.StatedShards, Times: c.LeaderElection, Clock: clock.RealClock{}, NewVersion: rand.Text,
		Owners: leaseOwners(mgr.GetAPIReader(), namesOf(c.ReleaseName).ClusterRole), Deliver: d.deliver, Log: d.log,
		Metrics: shards.NewMetrics(metrics.Registry, c.Delivery.Shards),
	})
	return d, nil
}

// shareOf returns the part of a limit of the process that applies to one shard, if each replica holds its share of the
// shards.
func shareOf(c *configv1alpha1.ManagerConfiguration, limit int) int {
	held := (c.Delivery.Shards + max(c.Replicas, 1) - 1) / max(c.Replicas, 1)
	return max(limit/held, 1)
}

// leaseClients returns a client for the Leases and one that watches them. As for the leader's Lease, their connections
// are separate: a shared HTTP/2 connection is as slow as its other traffic.
func leaseClients(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration) (leases client.Client, watches client.WithWatch, err error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.NextProtos = []string{"http/1.1"}
	options := client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}
	if watches, err = client.NewWithWatch(config, options); err != nil {
		return nil, nil, fmt.Errorf("cannot create a client that watches the Leases of the shards: %w", err)
	}
	config.Timeout = c.LeaderElection.RenewDeadline.Duration / shards.RequestsPerRenewal
	if leases, err = client.New(config, options); err != nil {
		return nil, nil, fmt.Errorf("cannot create a client for the Leases of the shards: %w", err)
	}
	return leases, watches, nil
}

// Start implements manager.Runnable. It returns once the running calls are recorded.
func (d *shardDelivery) Start(ctx context.Context) error {
	err := d.replica.Start(ctx)
	d.running.Wait()
	return err //nolint:wrapcheck // it names the operation
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica holds shards.
func (*shardDelivery) NeedLeaderElection() bool { return false }

// deliver delivers the posts of a shard until ctx is done. After that, its claims and calls are refused, since the shard
// is no longer held, and only the calls that have started continue.
func (d *shardDelivery) deliver(ctx context.Context, held *shards.Held) {
	ended := make(chan struct{})
	d.running.Go(func() {
		defer close(ended)
		if err := d.run(ctx, held); err != nil && ctx.Err() == nil {
			d.log.Error(err, "cannot deliver the posts of a shard; giving it up", "shard", held.Shard, "version", held.Version)
		}
	})
	select {
	case <-ctx.Done():
	case <-ended:
	}
}

func (d *shardDelivery) run(ctx context.Context, held *shards.Held) error {
	teams, err := assignedBefore(ctx, d.mgr.GetAPIReader(), d.config.Namespaces, held.Shard)
	if err != nil {
		return err
	}
	mgr, err := shardmanager.New(d.mgr, cacheOptions(d.config), held.Shard)
	if err != nil {
		return err //nolint:wrapcheck // it names the operation
	}
	options := d.posts
	options.Client, options.Team, options.AssignedBefore, options.Stopping = mgr.GetClient(), d.teams.Owner, teams, ctx.Done()
	options.Shard = &post.Shard{Name: held.Shard, Version: held.Version, Valid: held.Valid}
	reconciler, err := post.New(options)
	if err != nil {
		return err //nolint:wrapcheck // it names the missing options
	}
	if err := errors.Join(kubeclient.IndexMedia(ctx, mgr.GetFieldIndexer()), reconciler.SetupWithManager(mgr)); err != nil { //nolint:contextcheck // its watches end with the manager
		return err
	}
	listed := func(ctx context.Context) error {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			held.MarkListed()
		}
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(listed)); err != nil {
		return err //nolint:wrapcheck // it names the operation
	}
	return mgr.Start(ctx) //nolint:wrapcheck // it names the operation
}

// assignedBefore returns the teams of a shard whose posts all have its label, so that a cache that is filled later
// contains them. A team whose posts are not labelled yet was assigned just now, or had posts while shards were off.
func assignedBefore(ctx context.Context, api client.Reader, served configv1alpha1.Namespaces, shard string) ([]v1alpha1.Team, error) {
	var teams v1alpha1.TeamList
	if err := api.List(ctx, &teams); err != nil {
		return nil, fmt.Errorf("cannot list the teams: %w", err)
	}
	others := func(team v1alpha1.Team) bool { return team.Status.Shard != shard }
	if teams.Items = slices.DeleteFunc(teams.Items, others); len(teams.Items) == 0 {
		return nil, nil
	}
	unlabelled := map[string]bool{}
	for _, namespace := range served.Scopes() {
		if err := addUnlabelled(ctx, api, namespace, unlabelled); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(teams.Items, func(team v1alpha1.Team) bool { return unlabelled[team.Spec.Namespace] }), nil
}

// addUnlabelled adds the namespaces of unfinished posts without the label of a shard.
func addUnlabelled(ctx context.Context, api client.Reader, namespace string, unlabelled map[string]bool) error {
	without, err := labels.NewRequirement(v1alpha1.ShardLabel, selection.DoesNotExist, nil)
	if err != nil {
		return fmt.Errorf("cannot select the posts without a shard: %w", err)
	}
	err = kubeclient.EachUnfinishedPost(ctx, api, func(page []metav1.PartialObjectMetadata) error {
		for i := range page {
			unlabelled[page[i].Namespace] = true
		}
		return nil
	}, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*without)})
	if err != nil {
		return fmt.Errorf("cannot list the posts without a shard: %w", err)
	}
	return nil
}
