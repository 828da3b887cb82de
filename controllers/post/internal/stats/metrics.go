// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stats measures the deliveries of posts: counters of their outcomes, and gauges that each scrape computes from
// the objects in the cache.
package stats

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// LateAfter is the lateness that counts as late for a team. A single due post is sent within milliseconds; ten thousand
// posts that are due at once take seconds.
const LateAfter = 10 * time.Second

// Labels that several metrics share. Each namespace belongs to a team, so there are as many values as teams.
const (
	labelNamespace = "namespace"
	labelPlatform  = "platform"
)

// Metrics holds the metrics of the post controller.
type Metrics struct {
	// Deliveries counts the outcomes of deliveries.
	Deliveries *Deliveries

	bytes     *prometheus.CounterVec
	abandoned *prometheus.CounterVec
	expired   prometheus.Counter
	scrapes   *collector
}

// Deliveries measures how well the delivery keeps its guarantees.
type Deliveries struct {
	lateness  prometheus.Histogram
	late      *prometheus.CounterVec
	publishes *prometheus.CounterVec
	settles   *prometheus.CounterVec
	results   *prometheus.CounterVec
}

// New creates the metrics, and registers them unless registerer is nil.
func New(registerer prometheus.Registerer) *Metrics {
	register := promauto.With(registerer)
	m := &Metrics{
		Deliveries: newDeliveries(register),
		bytes: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_upload_bytes_total",
			Help: "Bytes of media files that Herald sent to platforms. Excludes files that a platform fetches itself.",
		}, []string{labelPlatform}),
		abandoned: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_records_abandoned_total",
			Help: "Posts that were deleted without a record of their outcome, because the store of media files was unavailable for an hour or the namespace " +
				"was being deleted, by the team's namespace. One that is created again is published again.",
		}, []string{labelNamespace}),
		expired: register.NewCounter(prometheus.CounterOpts{
			Name: "herald_expired_claims_total",
			Help: "Claims that the Kubernetes API did not store within delivery.sendWindow, so that nothing was sent for them. They cost a second write and are made again.",
		}),
	}
	m.scrapes = &collector{gauges: newGauges(), deliveries: m.Deliveries, abandoned: m.abandoned}
	if registerer != nil {
		registerer.MustRegister(m.scrapes)
	}
	return m
}

func newDeliveries(register promauto.Factory) *Deliveries {
	return &Deliveries{
		lateness: register.NewHistogram(prometheus.HistogramOpts{
			Name:    "herald_schedule_lateness_seconds",
			Help:    "Time from a post's scheduled time to the first call to a platform.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
		}),
		late: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_late_targets_total",
			Help: "Targets of scheduled posts whose first call to the platform came more than 10 seconds after the scheduled time, by the team's namespace.",
		}, []string{labelNamespace, labelPlatform}),
		publishes: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_publishes_total",
			Help: "Calls that could publish, by platform and known outcome: " +
				"posted, refused, notSent, accepted (the platform works on it) or unknown (to be looked up).",
		}, []string{labelPlatform, "outcome"}),
		settles: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_settles_total",
			Help: "Lookups of calls whose response was lost or contained no outcome, by platform and by the attempt's state afterwards.",
		}, []string{labelPlatform, "outcome"}),
		results: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_target_results_total",
			Help: "Targets of posts that came to an end, by the team's namespace, the platform, the state (posted, failed, withdrawn, " +
				"or undecided until a user has looked) and the reason that the target's status gives.",
		}, []string{labelNamespace, labelPlatform, "state", "reason"}),
	}
}

// Watch adds a source whose posts each scrape counts from this process's election until it stops, or until stop is
// called. There are several sources if the process delivers the posts of several shards.
func (m *Metrics) Watch(source *Source) (stop func()) {
	c := m.scrapes
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = append(slices.Clone(c.sources), source)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sources = slices.DeleteFunc(slices.Clone(c.sources), func(other *Source) bool { return other == source })
	}
}

// ObserveLateness counts a scheduled post's first call to a target. due is moved by the team's suspensions.
func (d *Deliveries) ObserveLateness(conn *v1alpha1.Connection, due, now time.Time) {
	late := max(now.Sub(due), 0)
	d.lateness.Observe(late.Seconds())
	if late > LateAfter {
		d.late.WithLabelValues(conn.Namespace, string(conn.Spec.Platform)).Inc()
	}
}

// Published counts a call that could publish, by its outcome.
func (d *Deliveries) Published(platform v1alpha1.Platform, outcome platforms.Outcome) {
	d.publishes.WithLabelValues(string(platform), string(outcome)).Inc()
}

// Settled counts a lookup of an open attempt, by the state of the attempt after it.
func (d *Deliveries) Settled(t *v1alpha1.TargetStatus) {
	outcome := "open"
	if !attempt.IsOpen(t.Attempt) {
		outcome = string(t.Attempt.Outcome)
	}
	d.settles.WithLabelValues(string(t.Platform), outcome).Inc()
}

// Changed counts the targets that a stored status has settled or left undecided.
func (d *Deliveries) Changed(post *v1alpha1.Post, before *v1alpha1.PostStatus) {
	was := &v1alpha1.Post{Status: *before}
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		state := posting.StateOf(t)
		if old := posting.Of(was).Target(int(t.Index)); state == v1alpha1.TargetPending || old != nil && posting.StateOf(old) == state {
			continue
		}
		reason := ""
		if t.Blocked != nil {
			reason = t.Blocked.Reason
		}
		d.results.WithLabelValues(post.Namespace, string(t.Platform), string(state), reason).Inc()
	}
}

// Sent returns the counter for the file bytes that are sent to a platform.
func (m *Metrics) Sent(platform v1alpha1.Platform) prepare.Sent {
	return m.bytes.WithLabelValues(string(platform))
}

// Abandoned counts a post that was deleted without a record, by namespace.
func (m *Metrics) Abandoned(namespace string) { m.abandoned.WithLabelValues(namespace).Inc() }

// ClaimExpired counts a claim that was not stored within the send window.
func (m *Metrics) ClaimExpired() { m.expired.Inc() }

// collector computes the gauges at each scrape.
type collector struct {
	gauges gauges
	// deliveries and abandoned have series for each team, which start and end with its accounts.
	deliveries *Deliveries
	abandoned  *prometheus.CounterVec

	mu sync.Mutex
	// sources provide what each scrape counts.
	sources []*Source
	// teams holds the namespaces whose series exist.
	teams map[string]bool
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	g := &c.gauges
	for _, desc := range []*prometheus.Desc{g.posts, g.due, g.overdue, g.suspended, g.waiting, g.attempts, g.undecided, g.lateUploads, g.bytes, g.upload, g.queue, g.appLimited, g.claims} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	sources := c.sources
	c.mu.Unlock()
	var count *snapshot
	for _, s := range sources {
		switch {
		case !s.isActive():
		case count == nil:
			count = s.snapshot()
		default:
			count.add(s.snapshot())
		}
	}
	if count != nil {
		c.setAccounts(count.accounts)
		c.gauges.collect(ch, count)
	}
}

// isActive reports whether this process reports the gauges of a source.
func (s *Source) isActive() bool {
	select {
	case <-s.Stopping:
		return false
	default:
	}
	select {
	case <-s.Elected:
		return true
	default:
		return false
	}
}

// setAccounts updates the series to the connected accounts, by namespace and platform. New series start at zero, so
// that a team's first late or refused post is an increase. The series of removed teams are deleted, so that there are
// never more series than accounts.
func (c *collector) setAccounts(accounts map[account]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	teams := map[string]bool{}
	for of := range accounts {
		teams[of.namespace] = true
		c.abandoned.WithLabelValues(of.namespace)
		c.deliveries.late.WithLabelValues(of.namespace, of.platform)
		c.deliveries.results.WithLabelValues(of.namespace, of.platform, string(v1alpha1.TargetPosted), "")
		c.deliveries.results.WithLabelValues(of.namespace, of.platform, string(v1alpha1.TargetFailed), v1alpha1.ReasonRefused)
	}
	for namespace := range c.teams {
		if !teams[namespace] {
			gone := prometheus.Labels{labelNamespace: namespace}
			c.deliveries.late.DeletePartialMatch(gone)
			c.deliveries.results.DeletePartialMatch(gone)
			c.abandoned.DeletePartialMatch(gone)
		}
	}
	c.teams = teams
}
