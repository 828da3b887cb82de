// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postschedule

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Outcomes of an occurrence.
const (
	created     = "created"
	missed      = "missed"
	refusedPost = "refused"
)

// Metrics counts the posts of schedules.
type Metrics struct{ posts *prometheus.CounterVec }

// NewMetrics creates the metrics and registers them with r, unless r is nil. It panics if they are already registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{posts: promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "herald_schedule_posts_total",
		Help: "Posts of PostSchedules, by outcome: created, refused (attempts that the Kubernetes API rejected, and that are repeated) or missed (left out, because it was too late).",
	}, []string{"outcome"})}
	// Each series starts at zero, so that the first event shows as an increase.
	for _, outcome := range []string{created, missed, refusedPost} {
		m.posts.WithLabelValues(outcome)
	}
	return m
}

func (m *Metrics) increment(outcome string) { m.posts.WithLabelValues(outcome).Inc() }
