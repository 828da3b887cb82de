// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

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
	// archivers is how many records are written at once: one takes some 50 ms, most of it in
	// the store, so that 160 a second are kept.
	archivers = 8
	// defaultUnderway is the default of Records.Underway. Nearly all posts are finished by then, and
	// take one write to the store.
	defaultUnderway = time.Minute
	// maxRetryPause bounds the pause between two tries.
	maxRetryPause = time.Minute
	// recordsPerSecond and recordsBurst are how many records a second, and in a row, are written as their
	// posts are finished. Those of a burst come burstDelay, and up to burstSpread more, after it: the
	// deliveries shall have the processors and the store to themselves. Both are within the minute
	// in which a finished post has its record; bursts of more than some thousands take longer, by
	// what archivers keep in a second.
	recordsPerSecond = 10
	recordsBurst     = 100
	burstDelay       = 15 * time.Second
	burstSpread      = 30 * time.Second
)

// archiver keeps the records of finished posts, and of those that wait for a person or are under
// way for long, beside the passes: nothing waits for it but a deletion. It runs on the leader, in
// its own goroutines.
type archiver struct {
	records *records
	queue   clientworkqueue.TypedRateLimitingInterface[types.NamespacedName]
	// immediate is the rate up to which records are written as their posts are finished.
	immediate *rate.Limiter
	// teamQueue are the names of teams whose finished posts are compared with their records.
	teamQueue clientworkqueue.TypedRateLimitingInterface[string]
	// metadata lists the finished posts, of which the cache holds none.
	metadata metadata.Interface
}

func newArchiver(rs *records) *archiver {
	return &archiver{
		records: rs,
		queue: clientworkqueue.NewTypedRateLimitingQueueWithConfig(newRetryLimiter[types.NamespacedName](),
			clientworkqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "post-records", Clock: rs.o.Clock}),
		teamQueue: clientworkqueue.NewTypedRateLimitingQueueWithConfig(newRetryLimiter[string](),
			clientworkqueue.TypedRateLimitingQueueConfig[string]{Name: "post-records-teams"}),
		immediate: rate.NewLimiter(recordsPerSecond, recordsBurst),
	}
}

// newRetryLimiter says when what failed is tried again.
func newRetryLimiter[T comparable]() clientworkqueue.TypedRateLimiter[T] {
	return clientworkqueue.NewTypedItemExponentialFailureRateLimiter[T](time.Second, maxRetryPause)
}

// add has the manager run the archiver.
func (rs *records) add(mgr ctrl.Manager) error {
	if rs.archiver == nil {
		return nil
	}
	meta, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("cannot list finished posts: %w", err)
	}
	rs.archiver.metadata = meta
	return mgr.Add(rs.archiver)
}

// enqueue has the record of a post kept that a pass has finished, or brought to wait for a person,
// who may take weeks; of one that is under way, or finished in a burst, a while later. What is
// known of it must not be lost with its object.
func (rs *records) enqueue(p *reconciliation) {
	switch {
	case rs.archiver == nil || !p.post.DeletionTimestamp.IsZero() || !record.Required(p.post):
	case record.Underway(p.post):
		rs.archiver.queue.AddAfter(p.key, cmp.Or(rs.o.Records.Underway, defaultUnderway))
	case !rs.archiver.immediate.AllowN(rs.o.Clock.Now(), 1):
		rs.archiver.queue.AddAfter(p.key, burstDelay+rand.N(burstSpread)) //nolint:gosec // it spreads load
	default:
		rs.archiver.queue.Add(p.key)
	}
}

// Start works until the context ends.
func (a *archiver) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range archivers {
		workers.Go(func() {
			for a.processNextItem(ctx) {
			}
		})
	}
	workers.Go(func() { a.backfill(ctx) })
	<-ctx.Done()
	a.queue.ShutDown()
	a.teamQueue.ShutDown()
	workers.Wait()
	return nil
}

// processNextItem works on one post. It reports false when the archiver ends.
func (a *archiver) processNextItem(ctx context.Context) bool {
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
		a.queue.AddRateLimited(key) // Whoever asked has said why.
	case ctx.Err() == nil:
		ctrl.Log.WithName("records").Info("cannot keep the record of a post yet; trying again", "namespace", key.Namespace, "name", key.Name, "error", err.Error())
		a.queue.AddRateLimited(key)
	}
	return true
}

// sync keeps the record of a post as it stands now, and sees that the post has its
// finalizer, without which it would leave the lists when it is deleted. One that is being
// deleted leaves its record on its way out.
func (a *archiver) sync(ctx context.Context, key types.NamespacedName) error {
	if a.records.breaker.isOpen() {
		return errStoreUnavailable // No post is read in vain.
	}
	var post v1alpha1.Post
	if err := a.records.o.APIReader.Get(ctx, key, &post); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !record.Required(&post) || !post.DeletionTimestamp.IsZero() {
		return nil
	}
	if _, kept, err := a.records.writableTeam(ctx, key.Namespace); err != nil || !kept {
		return err
	}
	if _, err := addFinalizer(ctx, a.records.o.Client, &post); err != nil {
		return client.IgnoreNotFound(err)
	}
	_, err := a.records.save(ctx, &post)
	return err
}
