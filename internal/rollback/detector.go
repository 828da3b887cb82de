// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/internal/media/store"
)

const (
	// countEvery is how often it is counted: a snapshot that is put back within that time
	// after it was taken may not be noticed.
	countEvery = time.Minute
	// tryEvery is how soon it is tried again while it cannot be told whether the cluster was
	// put back, and first after any other failure: what is published until then is after the
	// last count.
	tryEvery = 5 * time.Second
	// countWithin bounds one count. Posts wait for the first one.
	countWithin = 5 * time.Second
	// lastWithin bounds the count of a process that ends.
	lastWithin = 2 * time.Second
	// recent is how old the cluster's own count may be so that the cluster is believed
	// without the bucket: less than it takes to put a snapshot back, and more than an
	// ordinary restart.
	recent = 5 * time.Minute
	// tries is how often it is counted again after another manager did at the same time.
	tries = 3
)

// Documents keeps the count in the bucket; *store.Store implements it.
type Documents interface {
	ReadDocument(ctx context.Context, key, known string, most int64) (data []byte, etag string, err error)
	PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (string, error)
}

// Status is what is known of rewinds.
type Status struct {
	// LastRollback is the last rewind; nil if there was none.
	LastRollback *Rollback
	// UnknownSince is since when it cannot be told whether there was one; zero if it can. What was
	// created later is not from before one.
	UnknownSince time.Time
	// Problem says why it cannot be told.
	Problem string
}

// Options are what New needs. All but Registerer are required.
type Options struct {
	// Documents is the bucket.
	Documents Documents
	// Cluster returns the identity of this cluster; see package installation.
	Cluster func(ctx context.Context) (string, error)
	// Client writes the Lease, and Reader reads it from the API server.
	Client client.Client
	Reader client.Reader
	// Lease is the Lease that the cluster counts on.
	Lease types.NamespacedName
	// Clock is that of the Kubernetes API.
	Clock clock.WithTicker
	// Registerer takes the metric; nil none.
	Registerer prometheus.Registerer
}

// Detector counts, and knows whether the cluster was put back. It may be asked by many
// goroutines at once.
type Detector struct {
	o            Options
	rolledBackAt prometheus.Gauge

	mu     sync.Mutex
	status Status
	// first is closed once the state is known for the first time.
	first chan struct{}
	// confirmed is whether the bucket has told, and believed whether the cluster alone is
	// believed until it does.
	confirmed, trusted bool
	// last is what this manager wrote or read on the Lease last. While the bucket is away it
	// stands in for it: the cluster does not count less by itself.
	last Count
}

// New returns a Counter.
func New(o Options) *Detector {
	return &Detector{o: o, first: make(chan struct{}), rolledBackAt: promauto.With(o.Registerer).NewGauge(prometheus.GaugeOpts{
		Name: "herald_cluster_rewound_timestamp_seconds",
		Help: "When it was noticed last that the cluster was put back to an earlier state, such as a snapshot of etcd, in seconds since 1970; 0 if it never was. " +
			"By the manager that works.",
	})}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Detector) NeedLeaderElection() bool { return true }

// Start counts at once, each minute, and once more when ctx ends. A count that fails is tried
// again sooner.
func (c *Detector) Start(ctx context.Context) error {
	began, again := c.o.Clock.Now(), tryEvery
	for {
		pause := countEvery
		switch err := c.within(ctx, countWithin); {
		case err == nil:
			again = tryEvery
		case ctx.Err() == nil:
			c.handleFailure(ctx, began, err)
			c.renew(ctx, countWithin, err)
			if pause = again; !c.isConfirmed() {
				pause = tryEvery
			}
			again = min(2*again, countEvery)
		}
		timer := c.o.Clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			c.countFinal(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// countFinal counts once more at the end: what was published within the last minute is after the
// last count.
func (c *Detector) countFinal(ctx context.Context) {
	if err := c.within(ctx, lastWithin); err != nil {
		log(ctx).V(1).Info("cannot count once more before the end", "error", err.Error())
		c.renew(ctx, lastWithin, err)
	}
}

func log(ctx context.Context) logr.Logger { return ctrllog.FromContext(ctx).WithName("clock") }

func (c *Detector) within(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return c.Count(ctx)
}

// Status returns what is known of rewinds. It waits until that is so for the first time, or
// until ctx ends, which is the error.
func (c *Detector) Status(ctx context.Context) (Status, error) {
	select {
	case <-c.first:
	case <-ctx.Done():
		return Status{}, fmt.Errorf("stopped before it was known whether the cluster was put back to an earlier state: %w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status, nil
}

// Count counts once, and takes what that tells of rewinds. An error means that it could not
// be counted everywhere; what is known of rewinds stands then as far as it could be read.
func (c *Detector) Count(ctx context.Context) error {
	return retryOnConflict(func() error { return c.count(ctx) })
}

// retryOnConflict does again what another manager did at the same time.
func retryOnConflict(count func() error) error {
	var err error
	for range tries {
		if err = count(); !errors.Is(err, store.ErrChanged) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return fmt.Errorf("other managers count at the same time: %w", err)
}

func (c *Detector) count(ctx context.Context) error {
	cluster, err := c.o.Cluster(ctx)
	if err != nil {
		return err
	}
	key := Key(cluster, c.o.Lease)
	kept, etag, err := c.readBucket(ctx, key)
	if err != nil {
		return &bucketError{err}
	}
	lease, counted, err := c.readLease(ctx)
	if err != nil {
		return err
	}
	noted := mostAdvanced(c.lastCount(), kept)
	count, _ := next(counted, noted, c.now())
	if count, err = c.countOnLease(ctx, lease, count, counted.At, noted.ResourceVersion); err != nil {
		return err
	}
	c.setStatus(ctx, Status{LastRollback: count.LastRollback}, true)
	return c.writeBucket(ctx, key, count, etag)
}

func (c *Detector) now() time.Time { return c.o.Clock.Now().UTC().Truncate(time.Second) }

// countOnLease writes a count to the Lease, with what the Lease's resourceVersion tells only
// then: from is when the state of the cluster is from, and noted the one to compare with. It
// returns the count as it was written, with its resourceVersion.
func (c *Detector) countOnLease(ctx context.Context, lease *coordinationv1.Lease, count Count, from time.Time, noted string) (Count, error) {
	if err := c.writeLease(ctx, lease, count); err != nil {
		return Count{}, err
	}
	if why := revisionGap(noted, lease.ResourceVersion); why != "" && (count.LastRollback == nil || count.LastRollback.DetectedAt.Before(count.At)) {
		count.LastRollback = &Rollback{From: from, DetectedAt: count.At, Evidence: why}
		if err := c.writeLease(ctx, lease, count); err != nil {
			return Count{}, err
		}
	}
	count.ResourceVersion = lease.ResourceVersion
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = count
	return count, nil
}

// renew says on the Lease that somebody works, if it was the bucket that could not be read
// and it is known nevertheless what state the cluster is in: the manager that follows would
// doubt that otherwise, and keep posts back. It takes time of its own, as a bucket that
// does not answer has used up that of the count.
func (c *Detector) renew(ctx context.Context, most time.Duration, why error) {
	if _, bucket := errors.AsType[*bucketError](why); !bucket || !c.isConfirmed() && !c.isTrusted() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := retryOnConflict(func() error { return c.renewLease(ctx) }); err != nil {
		log(ctx).Info("cannot renew the lease while the bucket cannot be read", "error", err.Error())
	}
}

// renewLease renews the time of the cluster's count, and not its number: that grows only
// after the bucket was read, or a cluster that was put back could catch up with the bucket
// before anybody has compared the two. What this manager has counted stands in for the
// bucket.
func (c *Detector) renewLease(ctx context.Context) error {
	lease, counted, err := c.readLease(ctx)
	if err != nil {
		return err
	}
	noted, now := c.lastCount(), c.now()
	count, rewound := next(counted, noted, now)
	count.Number--
	if !rewound && now.Sub(counted.At).Abs() < countEvery/2 {
		return nil // it is tried more often than this needs, while only the cluster is believed
	}
	if count, err = c.countOnLease(ctx, lease, count, counted.At, noted.ResourceVersion); err != nil {
		return err
	}
	c.setStatus(ctx, Status{LastRollback: count.LastRollback}, false)
	return nil
}

// handleFailure takes that it could not be counted. What was known stays. At the begin, the
// cluster alone is believed if it has counted a moment ago, since an ordinary restart must
// not wait for the bucket; otherwise what is from before waits.
func (c *Detector) handleFailure(ctx context.Context, began time.Time, why error) {
	if c.isConfirmed() {
		log(ctx).Info("cannot count; an earlier state of the cluster would not be noticed if it were put back now", "error", why.Error())
		return
	}
	log(ctx).Info("cannot tell yet whether the cluster was put back to an earlier state; trying again", "error", why.Error())
	_, bucket := errors.AsType[*bucketError](why)
	switch {
	case c.isTrusted():
	case bucket:
		c.trustCluster(ctx, began)
	default:
		c.setStatus(ctx, Status{UnknownSince: began, Problem: "the manager's log has the error"}, false)
	}
}

// trustCluster takes what the cluster alone tells.
func (c *Detector) trustCluster(ctx context.Context, began time.Time) {
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	state := Status{UnknownSince: began, Problem: "the store of media files does not answer (the manager's log has the error)"}
	lease, counted, err := c.readLease(ctx)
	if err == nil && counted.Number > 0 && began.Sub(counted.At).Abs() <= recent {
		state = Status{}
		counted.ResourceVersion = lease.ResourceVersion
		c.mu.Lock()
		c.trusted, c.last = true, counted
		c.mu.Unlock()
	}
	if err == nil {
		state.LastRollback = counted.LastRollback
	}
	c.setStatus(ctx, state, false)
}

// setStatus takes what is known of rewinds; known says that the bucket has told it.
func (c *Detector) setStatus(ctx context.Context, state Status, known bool) {
	c.mu.Lock()
	before := c.status.LastRollback
	// What was noticed, and could not be written, stays.
	state.LastRollback = latest(before, state.LastRollback)
	c.status, c.confirmed = state, c.confirmed || known
	select {
	case <-c.first:
	default:
		close(c.first)
	}
	c.mu.Unlock()
	if r := state.LastRollback; r != nil {
		c.rolledBackAt.Set(float64(r.DetectedAt.Unix()))
		if before == nil || r.DetectedAt.After(before.DetectedAt) {
			log(ctx).Info("the cluster was put back to an earlier state: what became of posts from before is looked up in the bucket, and where nothing is kept "+
				"of one whose time had come, a person is asked", "noticed", r.DetectedAt, "lastCounted", r.From, "because", r.Evidence)
		}
	}
}

func (c *Detector) isConfirmed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.confirmed
}

func (c *Detector) isTrusted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trusted
}

func (c *Detector) lastCount() Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}
