// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Reasons for the removal of a Media or a file.
const (
	removedUnused   = "unused"
	removedExpired  = "expired"
	removedRejected = "rejected"
	removedOrphan   = "orphan"
)

// Metrics counts uploads, fetches and removals of media files.
type Metrics struct {
	uploads *prometheus.CounterVec
	fetches *prometheus.CounterVec
	bytes   prometheus.Counter
	removed *prometheus.CounterVec
	swept   prometheus.Gauge
}

// NewMetrics creates the metrics and registers them with r, unless r is nil. It panics if they are already registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	factory := promauto.With(r)
	m := &Metrics{
		uploads: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_media_files_total",
			Help: "Media files that left the waiting state, by outcome: uploaded, rejected or expired.",
		}, []string{"outcome"}),
		fetches: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_media_fetches_total",
			Help: "Attempts to fetch a media file from its source, by outcome: fetched, failed (may be retried) or refused.",
		}, []string{"outcome"}),
		bytes: factory.NewCounter(prometheus.CounterOpts{
			Name: "herald_media_fetched_bytes_total",
			Help: "Bytes of media files fetched from their sources.",
		}),
		removed: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_media_removed_total",
			Help: "Media removed because no post used them (by state: unused, expired, rejected), and files without a Media (orphan).",
		}, []string{"reason"}),
		swept: factory.NewGauge(prometheus.GaugeOpts{
			Name: "herald_media_last_sweep_timestamp_seconds",
			Help: "Time of the last successful sweep of the store and of unused media files, in seconds since 1970.",
		}),
	}
	// Each series starts at zero, so that the first event shows as an increase.
	for _, phase := range []v1alpha1.MediaPhase{v1alpha1.MediaUploaded, v1alpha1.MediaRejected, v1alpha1.MediaExpired} {
		m.uploads.WithLabelValues(string(phase))
	}
	for _, outcome := range []string{"fetched", "failed", "refused"} {
		m.fetches.WithLabelValues(outcome)
	}
	for _, reason := range []string{removedUnused, removedExpired, removedRejected, removedOrphan} {
		m.removed.WithLabelValues(reason)
	}
	return m
}

func (m *Metrics) concluded(phase v1alpha1.MediaPhase) {
	m.uploads.WithLabelValues(string(phase)).Inc()
}

func (m *Metrics) fetched(size int64) {
	m.fetches.WithLabelValues("fetched").Inc()
	m.bytes.Add(float64(size))
}

func (m *Metrics) failed()  { m.fetches.WithLabelValues("failed").Inc() }
func (m *Metrics) refused() { m.fetches.WithLabelValues("refused").Inc() }

func (m *Metrics) incRemoved(reason string) { m.removed.WithLabelValues(reason).Inc() }

func (m *Metrics) sweptAt(now time.Time) { m.swept.Set(float64(now.UnixMilli()) / 1000) }
