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
	// countEvery is the interval between counts. A rollback by less than that may not be detected.
	countEvery = time.Minute
	// tryEvery is the retry interval while it is unknown whether the cluster was rolled back, and the first retry interval
	// after any other failure: posts published in the meantime are later than the last count.
	tryEvery     = 5 * time.Second
	countTimeout = 5 * time.Second
	lastTimeout  = 2 * time.Second
	// recent is the maximum age of the cluster's own count for it to be trusted without the bucket: shorter than it
	// takes to restore a snapshot, and longer than an ordinary restart.
	recent = 5 * time.Minute
	// tries limits how often counting is attempted when another manager counts at the same time.
	tries = 3
)

// Documents stores the count in the bucket; *store.Store implements it.
type Documents interface {
	ReadDocument(ctx context.Context, key, known string, most int64) (data []byte, etag string, err error)
	PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (string, error)
}

// Status describes the last rollback, and whether another one can be ruled out.
type Status struct {
	// LastRollback is the last rollback, or nil if there was none.
	LastRollback *Rollback
	// UnknownSince is the time since which a rollback cannot be ruled out, or zero. Objects created later cannot predate
	// one.
	UnknownSince time.Time
	// Problem explains why a rollback cannot be ruled out.
	Problem string
}

// Options are the dependencies of New. All but Registerer are required.
type Options struct {
	// Documents is the bucket.
	Documents Documents
	// Cluster returns this cluster's identity; see package installation.
	Cluster func(ctx context.Context) (string, error)
	// Client writes the Lease, and Reader reads it from the API server.
	Client client.Client
	Reader client.Reader
	// Lease is the Lease that holds the cluster's count.
	Lease types.NamespacedName
	// Clock is the Kubernetes API's clock.
	Clock clock.WithTicker
	// Registerer registers the metric. If nil, there is none.
	Registerer prometheus.Registerer
}

// Detector counts, and detects that the cluster was rolled back. It is safe for concurrent use.
type Detector struct {
	o            Options
	rolledBackAt prometheus.Gauge

	mu     sync.Mutex
	status Status
	first  chan struct{}
	// confirmed is true after the bucket was read. trusted is true while only the cluster's count is used.
	confirmed, trusted bool
	// last is the count that this manager last wrote to the Lease or read from it. It replaces the bucket's count while
	// the bucket is unavailable: the cluster's count does not decrease on its own.
	last Count
}

// New returns a Detector.
func New(o Options) *Detector {
	return &Detector{o: o, first: make(chan struct{}), rolledBackAt: promauto.With(o.Registerer).NewGauge(prometheus.GaugeOpts{
		Name: "herald_cluster_rewound_timestamp_seconds",
		Help: "Time of the last detected rollback of the cluster to an earlier state, such as a snapshot of etcd, in seconds since 1970; 0 if there was none. " +
			"Reported by the leader.",
	})}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Detector) NeedLeaderElection() bool { return true }

// Start counts immediately, every minute, and one last time when ctx is done. It retries a failed count sooner.
func (c *Detector) Start(ctx context.Context) error {
	began, again := c.o.Clock.Now(), tryEvery
	for {
		pause := countEvery
		switch err := c.within(ctx, countTimeout); {
		case err == nil:
			again = tryEvery
		case ctx.Err() == nil:
			c.handleFailure(ctx, began, err)
			c.renew(ctx, countTimeout, err)
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
			c.incrementFinally(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// incrementFinally increments the counter at shutdown, since posts published within the last minute are later than its
// last value.
func (c *Detector) incrementFinally(ctx context.Context) {
	if err := c.within(ctx, lastTimeout); err != nil {
		log(ctx).V(1).Info("cannot count at shutdown", "error", err.Error())
		c.renew(ctx, lastTimeout, err)
	}
}

func log(ctx context.Context) logr.Logger { return ctrllog.FromContext(ctx).WithName("clock") }

func (c *Detector) within(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return c.Increment(ctx)
}

// Status returns the rollback status. It waits until the status has been set. The error is the error of ctx.
func (c *Detector) Status(ctx context.Context) (Status, error) {
	select {
	case <-c.first:
	case <-ctx.Done():
		return Status{}, fmt.Errorf("stopped before it was known whether the cluster was restored to an earlier state: %w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status, nil
}

// Increment increments the counter and updates the status. It returns an error if it could not do so in both places;
// the status then reflects whichever could be read.
func (c *Detector) Increment(ctx context.Context) error {
	return retryOnConflict(func() error { return c.increment(ctx) })
}

// retryOnConflict repeats a count after a conflict with another manager.
func retryOnConflict(count func() error) error {
	var err error
	for range tries {
		if err = count(); !errors.Is(err, store.ErrChanged) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return fmt.Errorf("other managers count at the same time: %w", err)
}

func (c *Detector) increment(ctx context.Context) error {
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
	recorded := mostAdvanced(c.lastCount(), kept)
	count, _ := next(counted, recorded, c.now())
	if count, err = c.writeCount(ctx, lease, count, counted.At, recorded.ResourceVersion); err != nil {
		return err
	}
	c.setStatus(ctx, Status{LastRollback: count.LastRollback}, true)
	return c.writeBucket(ctx, key, count, etag)
}

func (c *Detector) now() time.Time { return c.o.Clock.Now().UTC().Truncate(time.Second) }

// writeCount writes a count to the Lease and then checks the Lease's new resourceVersion against noted; from is the
// time of the cluster's state. It returns the stored count with its resourceVersion.
func (c *Detector) writeCount(ctx context.Context, lease *coordinationv1.Lease, count Count, from time.Time, noted string) (Count, error) {
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

// renew updates the time on the Lease if only the bucket could not be read but the cluster's state is known. Otherwise
// the next leader would doubt that state and delay posts. Its own timeout is needed: the bucket has used up the
// timeout of the count.
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

// renewLease updates the time of the cluster's count, but not its number. The number increases only after the bucket
// was read; otherwise a restored cluster could catch up with the bucket before the two were compared. This manager's
// last count stands in for the count in the bucket.
func (c *Detector) renewLease(ctx context.Context) error {
	lease, counted, err := c.readLease(ctx)
	if err != nil {
		return err
	}
	recorded, now := c.lastCount(), c.now()
	count, rewound := next(counted, recorded, now)
	count.Number--
	if !rewound && now.Sub(counted.At).Abs() < countEvery/2 {
		return nil // while only the cluster is trusted, retries are more frequent than this update needs to be
	}
	if count, err = c.writeCount(ctx, lease, count, counted.At, recorded.ResourceVersion); err != nil {
		return err
	}
	c.setStatus(ctx, Status{LastRollback: count.LastRollback}, false)
	return nil
}

// handleFailure handles a failed count. Known state is kept. At startup, the cluster alone is trusted if its count is
// recent, so that an ordinary restart does not wait for the bucket; otherwise earlier posts wait.
func (c *Detector) handleFailure(ctx context.Context, began time.Time, why error) {
	if c.isConfirmed() {
		log(ctx).Info("cannot count; a rollback of the cluster would not be detected now", "error", why.Error())
		return
	}
	log(ctx).Info("cannot determine whether the cluster was restored to an earlier state; retrying", "error", why.Error())
	_, bucket := errors.AsType[*bucketError](why)
	switch {
	case c.isTrusted():
	case bucket:
		c.trustCluster(ctx, began)
	default:
		c.setStatus(ctx, Status{UnknownSince: began, Problem: "the manager's log has the error"}, false)
	}
}

func (c *Detector) trustCluster(ctx context.Context, began time.Time) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
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

// setStatus updates the status. known is true if the bucket was read.
func (c *Detector) setStatus(ctx context.Context, state Status, known bool) {
	c.mu.Lock()
	before := c.status.LastRollback
	// A detected rollback is kept even if it could not be written.
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
			log(ctx).Info("the cluster was restored to an earlier state: the outcomes of earlier posts are looked up in the bucket, and a user is asked about due posts "+
				"without a record", "noticed", r.DetectedAt, "lastCounted", r.From, "because", r.Evidence)
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
