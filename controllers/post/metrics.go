// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Metrics are the promises of delivery as numbers.
type Metrics struct {
	lateness  prometheus.Histogram
	publishes *prometheus.CounterVec
	settles   *prometheus.CounterVec

	registerer prometheus.Registerer
}

// unfinished shows, at each scrape, the posts that are not finished and the
// calls whose outcome is not known, as the cache has them.
type unfinished struct {
	o        Options
	inPhase  *prometheus.Desc
	attempts *prometheus.Desc
}

func newUnfinished(o Options) *unfinished {
	return &unfinished{
		o: o,
		inPhase: prometheus.NewDesc("herald_unfinished_posts",
			"Posts that are not finished, by phase.", []string{"phase"}, nil),
		attempts: prometheus.NewDesc("herald_open_attempts",
			"Calls whose outcome is not recorded: within their window, or past it and being looked for.", []string{"platform", "window"}, nil),
	}
}

func (u *unfinished) Describe(ch chan<- *prometheus.Desc) {
	ch <- u.inPhase
	ch <- u.attempts
}

func (u *unfinished) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()
	var posts v1alpha1.PostList
	if err := u.o.Client.List(ctx, &posts, client.UnsafeDisableDeepCopy); err != nil {
		ch <- prometheus.NewInvalidMetric(u.inPhase, err)
		return
	}
	phases := map[v1alpha1.PostPhase]int{}
	attempts := map[[2]string]int{}
	for i := range posts.Items {
		post := &posts.Items[i]
		phases[posting.PhaseOf(post)]++
		for n := range post.Status.Targets {
			if t := &post.Status.Targets[n]; attempt.IsOpen(t.Attempt) {
				attempts[[2]string{string(t.Platform), u.windowOf(t)}]++
			}
		}
	}
	for phase, n := range phases {
		ch <- prometheus.MustNewConstMetric(u.inPhase, prometheus.GaugeValue, float64(n), string(phase))
	}
	for labels, n := range attempts {
		ch <- prometheus.MustNewConstMetric(u.attempts, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}

// collectWithin bounds the reading of the cache, which does not wait once it
// is filled.
const collectWithin = 5 * time.Second

// windowOf tells whether the call of an open attempt may still be under way.
func (u *unfinished) windowOf(t *v1alpha1.TargetStatus) string {
	timing := attempt.Timing{SendWindow: u.o.SendWindow, ClockMargin: u.o.ClockMargin}
	if p, ok := u.o.Platforms[t.Platform]; ok {
		timing.CallTimeout = p.Capabilities().CallTimeout
	}
	if attempt.Quiet(t.Attempt, timing, u.o.Clock.Now()) {
		return "past"
	}
	return "within"
}

// NewMetrics makes the metrics and registers them, unless registerer is nil.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	register := promauto.With(registerer)
	return &Metrics{
		registerer: registerer,
		lateness: register.NewHistogram(prometheus.HistogramOpts{
			Name:    "herald_schedule_lateness_seconds",
			Help:    "Time from a post's scheduled time to the first call to a platform.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
		}),
		publishes: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_publishes_total",
			Help: "Calls that could publish, by platform and by what is known after them.",
		}, []string{"platform", "outcome"}),
		settles: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_settles_total",
			Help: "Looks for calls whose answer was lost or did not tell the outcome, by platform and by how the attempt stands after them.",
		}, []string{"platform", "outcome"}),
	}
}

// watch adds what is counted at each scrape.
func (m *Metrics) watch(u *unfinished) error {
	if m.registerer == nil {
		return nil
	}
	if err := m.registerer.Register(u); err != nil {
		return fmt.Errorf("cannot register the metrics of unfinished posts: %w", err)
	}
	return nil
}

func (m *Metrics) late(post *v1alpha1.Post, now time.Time) {
	if at := post.Spec.ScheduledAt; at != nil {
		m.lateness.Observe(max(now.Sub(at.Time), 0).Seconds())
	}
}

func (m *Metrics) published(platform v1alpha1.Platform, outcome platforms.Outcome) {
	m.publishes.WithLabelValues(string(platform), string(outcome)).Inc()
}

func (m *Metrics) settled(t *v1alpha1.TargetStatus) {
	outcome := "open"
	if !attempt.IsOpen(t.Attempt) {
		outcome = string(t.Attempt.Outcome)
	}
	m.settles.WithLabelValues(string(t.Platform), outcome).Inc()
}
