// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/herald-social/herald/internal/archive"
)

// Metrics exposes the retention of finished posts.
type Metrics struct {
	removed  prometheus.Counter
	failures prometheus.Counter
	lag      prometheus.Gauge
	swept    prometheus.Gauge
	archived *prometheus.GaugeVec
}

// NewMetrics creates the metrics and registers them with r, unless r is nil. It panics if they are already registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	factory := promauto.With(r)
	return &Metrics{
		removed: factory.NewCounter(prometheus.CounterOpts{
			Name: "herald_posts_removed_total",
			Help: "Finished posts that left the cluster because their time there was over.",
		}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "herald_retention_failures_total",
			Help: "Incomplete sweeps of finished posts, for example while the store is unavailable. The rest is retried.",
		}),
		lag: factory.NewGauge(prometheus.GaugeOpts{
			Name: "herald_retention_lag_seconds",
			Help: "Time since the finished post that waits longest should have left the cluster.",
		}),
		swept: factory.NewGauge(prometheus.GaugeOpts{
			Name: "herald_retention_last_sweep_timestamp_seconds",
			Help: "Time of the last successful sweep of finished posts, in seconds since 1970.",
		}),
		archived: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "herald_archived_posts",
			Help: "Posts that have left the cluster and can be read from the archive, by the namespace of their team. Reported by the leader.",
		}, []string{"namespace"}),
	}
}

func (m *Metrics) archivedPosts(of archive.Team, posts int64) {
	m.archived.WithLabelValues(of.Namespace).Set(float64(posts))
}

func (m *Metrics) forget(namespace string) { m.archived.DeleteLabelValues(namespace) }

func (m *Metrics) incRemoved()                 { m.removed.Inc() }
func (m *Metrics) failed()                     { m.failures.Inc() }
func (m *Metrics) lateness(late time.Duration) { m.lag.Set(late.Seconds()) }
func (m *Metrics) sweptAt(now time.Time)       { m.swept.Set(float64(now.UnixMilli()) / 1000) }
