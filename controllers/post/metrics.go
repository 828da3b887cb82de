// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
)

// Metrics are the promises of delivery as numbers.
type Metrics struct {
	lateness  prometheus.Histogram
	publishes *prometheus.CounterVec
	settles   *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them, unless registerer is nil.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "herald_schedule_lateness_seconds",
			Help:    "Time from a post's scheduled time to the first call to a platform.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
		}),
		publishes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_publishes_total",
			Help: "Calls that could publish, by platform and by what is known after them.",
		}, []string{"platform", "verdict"}),
		settles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_settles_total",
			Help: "Looks for calls whose answer was lost, by platform and by how the attempt stands after them.",
		}, []string{"platform", "outcome"}),
	}
	if registerer != nil {
		registerer.MustRegister(m.lateness, m.publishes, m.settles)
	}
	return m
}

func (m *Metrics) late(post *v1alpha1.Post, now time.Time) {
	if at := post.Spec.ScheduledAt; at != nil {
		m.lateness.Observe(max(now.Sub(at.Time), 0).Seconds())
	}
}

func (m *Metrics) published(platform v1alpha1.Platform, verdict platforms.Verdict) {
	m.publishes.WithLabelValues(string(platform), string(verdict)).Inc()
}

func (m *Metrics) settled(t *v1alpha1.TargetStatus) {
	outcome := "open"
	if !attempt.IsOpen(t.Attempt) {
		outcome = string(t.Attempt.Outcome)
	}
	m.settles.WithLabelValues(string(t.Platform), outcome).Inc()
}
