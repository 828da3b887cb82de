// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// checkInterval is how often a manager checks the bucket's owner, so that a mistake is visible before a sweep.
	checkInterval = time.Minute
	checkTimeout  = 30 * time.Second
)

// Watch checks the bucket's owner periodically. A metric reports whether another cluster owns it, and a takeover is
// logged.
type Watch struct {
	bucket   *Bucket
	clock    clock.WithTicker
	foreign  prometheus.Gauge
	reported string
}

// NewWatch returns a Watch. It registers its metric with r unless r is nil.
func NewWatch(bucket *Bucket, now clock.WithTicker, r prometheus.Registerer) *Watch {
	return &Watch{bucket: bucket, clock: now, foreign: promauto.With(r).NewGauge(prometheus.GaugeOpts{
		Name: "herald_bucket_foreign",
		Help: "1 while the bucket is marked as another cluster's, so that nothing in it is removed; 0 otherwise. Reported by the leader.",
	})}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a check also claims a bucket without an owner.
func (*Watch) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (w *Watch) Start(ctx context.Context) error {
	ticker := w.clock.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		w.Check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Check checks once. If the store or the API server is unavailable, the last result is kept.
func (w *Watch) Check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	log := ctrllog.FromContext(ctx).WithName("bucket")
	err := w.bucket.MayDelete(ctx)
	var others *ForeignBucketError
	switch {
	case errors.As(err, &others):
		w.foreign.Set(1)
		if w.reported != others.Cluster {
			w.reported = others.Cluster
			log.Error(err, "the bucket belongs to another cluster")
		}
	case err != nil:
		log.V(1).Info("cannot read the owner of the bucket", "error", err.Error())
	default:
		w.foreign.Set(0)
		if w.reported != "" {
			w.reported = ""
			log.Info("the bucket now belongs to this cluster")
		}
	}
}
