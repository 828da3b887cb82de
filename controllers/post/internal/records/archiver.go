// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	clientworkqueue "k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/record"
)

const (
	// archivers is the number of records written concurrently. A write takes about 50 ms, most of it in the store, so
	// the archiver saves 160 records per second.
	archivers = 8
	// defaultUnderway is Config.Underway's default. Nearly all posts are finished by then, and need only one write.
	defaultUnderway = time.Minute
	maxRetryPause   = time.Minute
	// recordsPerSecond and recordsBurst are the rate and the burst at which records are written as soon as their posts are
	// finished. Records beyond that wait for burstDelay plus a random time up to burstSpread, so that deliveries have the
	// CPUs and the store to themselves. Both are within the minute that a finished post may wait for its record. Bursts of
	// more than a few thousand posts take longer, as limited by archivers.
	recordsPerSecond = 10
	recordsBurst     = 100
	burstDelay       = 15 * time.Second
	burstSpread      = 30 * time.Second
)

// Archiver saves the records of finished posts, and of posts that wait for a user or have been in progress for a long
// time. It is independent of the reconciliations: only a deletion waits for its record. It runs on the leader.
type Archiver struct {
	o         *Options
	records   *Records
	queue     clientworkqueue.TypedRateLimitingInterface[types.NamespacedName]
	immediate *rate.Limiter
	teamQueue clientworkqueue.TypedRateLimitingInterface[string]
	// metadata lists the finished posts, which the cache excludes. If it is nil, there is no backfill.
	metadata metadata.Interface
}

// NewArchiver returns an Archiver. Without an archive it does nothing.
func NewArchiver(o *Options, records *Records) *Archiver {
	a := &Archiver{o: o, records: records}
	if records.archived() {
		a.open()
	}
	return a
}

func (a *Archiver) open() {
	a.queue = clientworkqueue.NewTypedRateLimitingQueueWithConfig(newRetryLimiter[types.NamespacedName](),
		clientworkqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "post-records", Clock: a.o.Clock})
	a.teamQueue = clientworkqueue.NewTypedRateLimitingQueueWithConfig(newRetryLimiter[string](),
		clientworkqueue.TypedRateLimitingQueueConfig[string]{Name: "post-records-teams"})
	a.immediate = rate.NewLimiter(recordsPerSecond, recordsBurst)
}

func newRetryLimiter[T comparable]() clientworkqueue.TypedRateLimiter[T] {
	return clientworkqueue.NewTypedItemExponentialFailureRateLimiter[T](time.Second, maxRetryPause)
}

// SetupWithManager adds the archiver to the manager, unless there is no archive. In an installation, one archiver looks
// for finished posts without a record.
func (a *Archiver) SetupWithManager(mgr ctrl.Manager, backfills bool) error {
	switch {
	case !a.records.archived():
		return nil
	case !backfills:
		return mgr.Add(a)
	}
	meta, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("cannot list finished posts: %w", err)
	}
	a.metadata = meta
	return mgr.Add(a)
}

// Enqueue enqueues the record of a post that a reconciliation has finished, or has left to a user, who may take weeks:
// its outcome must not be lost with the object. Records of posts in progress, or finished in a burst, are delayed.
func (a *Archiver) Enqueue(post *v1alpha1.Post) {
	key := client.ObjectKeyFromObject(post)
	switch {
	case !a.records.archived() || !post.DeletionTimestamp.IsZero() || !record.Required(post):
	case record.Underway(post):
		a.queue.AddAfter(key, cmp.Or(a.o.Records.Underway, defaultUnderway))
	case !a.immediate.AllowN(a.o.Clock.Now(), 1):
		a.queue.AddAfter(key, burstDelay+rand.N(burstSpread)) //nolint:gosec // it spreads load
	default:
		a.queue.Add(key)
	}
}

// Start runs the archiver until ctx is done.
func (a *Archiver) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range archivers {
		workers.Go(func() {
			for a.processNextItem(ctx) {
			}
		})
	}
	if a.metadata != nil {
		workers.Go(func() { a.backfill(ctx) })
	}
	<-ctx.Done()
	a.queue.ShutDown()
	a.teamQueue.ShutDown()
	workers.Wait()
	return nil
}

func (a *Archiver) processNextItem(ctx context.Context) bool {
	key, stopped := a.queue.Get()
	if stopped {
		return false
	}
	defer a.queue.Done(key)
	err := a.sync(ctx, key)
	a.records.trackSave(key, err != nil)
	switch {
	case err == nil:
		a.queue.Forget(key)
	case errors.Is(err, errStoreUnavailable):
		a.queue.AddRateLimited(key) // The failed request has already been logged.
	case ctx.Err() == nil:
		ctrl.Log.WithName("records").Info("cannot save the record of a post; retrying", "namespace", key.Namespace, "name", key.Name, "error", err.Error())
		a.queue.AddRateLimited(key)
	}
	return true
}

// sync saves the record of a post in its current state, and ensures its finalizer, without which the post would leave
// the lists when it is deleted. A post that is being deleted saves its record on release.
func (a *Archiver) sync(ctx context.Context, key types.NamespacedName) error {
	if a.records.breaker.isOpen() {
		return errStoreUnavailable // saves reading the post
	}
	var post v1alpha1.Post
	if err := a.o.APIReader.Get(ctx, key, &post); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !record.Required(&post) || !post.DeletionTimestamp.IsZero() {
		return nil
	}
	if _, kept, err := a.records.writableTeam(ctx, key.Namespace); err != nil || !kept {
		return err
	}
	if _, err := addFinalizer(ctx, a.o.Client, &post); err != nil {
		return client.IgnoreNotFound(err)
	}
	_, err := a.records.save(ctx, &post)
	return err
}
