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
	// keepPauseMost bounds the pause between two tries.
	keepPauseMost = time.Minute
	// keptAtOnce and keptInARow are how many records a second, and in a row, are written as their
	// posts are finished. Those of a burst come keptLater, and up to keptSpread more, after it: the
	// deliveries shall have the processors and the store to themselves. Both are within the minute
	// in which a finished post has its record; bursts of more than some thousands take longer, by
	// what archivers keep in a second.
	keptAtOnce = 10
	keptInARow = 100
	keptLater  = 15 * time.Second
	keptSpread = 30 * time.Second
)

// archiver keeps the records of finished posts, and of those that wait for a person or are under
// way for long, beside the passes: nothing waits for it but a deletion. It runs on the leader, in
// its own goroutines.
type archiver struct {
	records *records
	queue   clientworkqueue.TypedRateLimitingInterface[types.NamespacedName]
	// atOnce is the rate up to which records are written as their posts are finished.
	atOnce *rate.Limiter
	// owning are the names of teams whose finished posts are compared with their records.
	owning clientworkqueue.TypedRateLimitingInterface[string]
	// metadata lists the finished posts, of which the cache holds none.
	metadata metadata.Interface
}

func newArchiver(rs *records) *archiver {
	return &archiver{
		records: rs,
		queue: clientworkqueue.NewTypedRateLimitingQueueWithConfig(keepAgain[types.NamespacedName](),
			clientworkqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "post-records", Clock: rs.o.Clock}),
		owning: clientworkqueue.NewTypedRateLimitingQueueWithConfig(keepAgain[string](),
			clientworkqueue.TypedRateLimitingQueueConfig[string]{Name: "post-records-teams"}),
		atOnce: rate.NewLimiter(keptAtOnce, keptInARow),
	}
}

// keepAgain says when what failed is tried again.
func keepAgain[T comparable]() clientworkqueue.TypedRateLimiter[T] {
	return clientworkqueue.NewTypedItemExponentialFailureRateLimiter[T](time.Second, keepPauseMost)
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

// later has the record of a post kept that a pass has finished, or brought to wait for a person,
// who may take weeks; of one that is under way, or finished in a burst, a while later. What is
// known of it must not be lost with its object.
func (rs *records) later(p *pass) {
	switch {
	case rs.archiver == nil || !p.post.DeletionTimestamp.IsZero() || !record.Needed(p.post):
	case record.Underway(p.post):
		rs.archiver.queue.AddAfter(p.key, cmp.Or(rs.o.Records.Underway, defaultUnderway))
	case !rs.archiver.atOnce.AllowN(rs.o.Clock.Now(), 1):
		rs.archiver.queue.AddAfter(p.key, keptLater+rand.N(keptSpread)) //nolint:gosec // it spreads load
	default:
		rs.archiver.queue.Add(p.key)
	}
}

// Start works until the context ends.
func (a *archiver) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range archivers {
		workers.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	workers.Go(func() { a.catchUp(ctx) })
	<-ctx.Done()
	a.queue.ShutDown()
	a.owning.ShutDown()
	workers.Wait()
	return nil
}

// next works on one post. It reports false when the archiver ends.
func (a *archiver) next(ctx context.Context) bool {
	key, stopped := a.queue.Get()
	if stopped {
		return false
	}
	defer a.queue.Done(key)
	err := a.work(ctx, key)
	a.records.tried(key, err != nil)
	switch {
	case err == nil:
		a.queue.Forget(key)
	case errors.Is(err, errAway):
		a.queue.AddRateLimited(key) // Whoever asked has said why.
	case ctx.Err() == nil:
		ctrl.Log.WithName("records").Info("cannot keep the record of a post yet; trying again", "namespace", key.Namespace, "name", key.Name, "error", err.Error())
		a.queue.AddRateLimited(key)
	}
	return true
}

// work keeps the record of a post as it stands now, and sees that the post has its
// finalizer, without which it would leave the lists when it is deleted. One that is being
// deleted leaves its record on its way out.
func (a *archiver) work(ctx context.Context, key types.NamespacedName) error {
	if a.records.outage.knows() {
		return errAway // No post is read in vain.
	}
	var post v1alpha1.Post
	if err := a.records.o.APIReader.Get(ctx, key, &post); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !record.Needed(&post) || !post.DeletionTimestamp.IsZero() {
		return nil
	}
	if _, kept, err := a.records.keeper(ctx, key.Namespace); err != nil || !kept {
		return err
	}
	if _, err := addFinalizer(ctx, a.records.o.Client, &post); err != nil {
		return client.IgnoreNotFound(err)
	}
	_, err := a.records.keep(ctx, &post)
	return err
}
