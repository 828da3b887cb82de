// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/controllers/retention"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/quota"
	postingretention "github.com/herald-social/herald/posting/retention"
)

func retentionPolicy(c *configv1alpha1.ManagerConfiguration) postingretention.Policy {
	return postingretention.Policy{
		InCluster: c.Retention.InCluster.Duration, Archived: c.Retention.Archived.Duration, LeastInCluster: c.Retention.LeastInCluster.Duration,
	}
}

// setupPosts adds the delivery and the retention of posts to the manager. With a bucket, both write records, and add
// deleted posts to the lists.
func setupPosts(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, namespace, identity string, kept *archive.Archive, files *store.Store, teams *quota.Teams,
	bucket *installation.Bucket, posts post.Options,
) error {
	now, counters := posts.Clock, retention.NewMetrics(metrics.Registry)
	shelf := retention.NewArchiver(retention.ArchiverOptions{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Policy: retentionPolicy(c), Archive: kept, Lists: lists.NewWriter(files, now),
		MayDelete: bucket.MayDelete,
	})
	posts.Records = &post.Records{Archive: kept, Owner: teams.Owner, List: func(ctx context.Context, p *v1alpha1.Post) error {
		owner, err := teams.Owner(ctx, p.Namespace)
		// Deleting a Team deletes its archive.
		if err != nil || owner == nil || !owner.DeletionTimestamp.IsZero() {
			return err
		}
		return shelf.List(ctx, owner, p)
	}}
	posts.Jumps = apiclock.NewJumps(now, nil)
	reconciler, err := post.New(posts)
	if err != nil {
		return err
	}
	shelf.Record = reconciler.SaveRecord
	leaving := retention.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Owner: teams.Owner, Namespaces: c.Namespaces,
		Policy: retentionPolicy(c), PostsPerSecond: c.Retention.PostsPerSecond, ClockMargin: posts.ClockMargin, Metrics: counters, Failpoint: posts.Failpoint,
	}
	if !kept.Absent() {
		leaving.Archive = shelf
		err = (&retention.ListReporter{Archiver: shelf, Metrics: counters}).SetupWithManager(mgr)
	}
	sweeper, wrong := retention.New(leaving)
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	return errors.Join(mgr.Add(whereDelivered(c, posts.Jumps)), setupDelivery(mgr, c, namespace, identity, teams, reconciler, posts), sweeper.SetupWithManager(mgr))
}

// setupDelivery adds the delivery to the manager: by the leader or, with several shards, by each replica for its own.
func setupDelivery(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, namespace, identity string, teams *quota.Teams, reconciler *post.Reconciler, posts post.Options) error {
	if c.Delivery.Shards <= 1 {
		return reconciler.SetupWithManager(mgr)
	}
	delivery, err := newShardDelivery(mgr, c, namespace, identity, posts, teams)
	if err != nil {
		return err
	}
	return errors.Join(reconciler.SetupRecords(mgr), mgr.Add(delivery))
}

// recordsOf returns the archive with the records of teams, or nil without a bucket. It is the same Archive that the
// writers use, so that clearing waits for running writes.
func recordsOf(kept *archive.Archive, bucket *installation.Bucket) team.Records {
	if kept.Absent() {
		return nil
	}
	return records{kept, bucket}
}

type records struct {
	archive *archive.Archive
	bucket  *installation.Bucket
}

// Clear implements team.Records. It keeps the data of another cluster.
func (r records) Clear(ctx context.Context, namespace, name string) (left bool, err error) {
	if err := r.bucket.MayDelete(ctx); err != nil {
		return true, err
	}
	return r.archive.Clear(ctx, archive.Team{Namespace: namespace, Name: name})
}
