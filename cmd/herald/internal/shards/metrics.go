// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/herald-social/herald/posting/placement"
)

const labelShard = "shard"

var heldDesc = prometheus.NewDesc("herald_shard_held",
	"1 if this process holds the shard and has listed its posts, else 0. Absent with one shard, and while the leader has another number of shards.",
	[]string{labelShard}, nil)

// Metrics exposes the shards that this process holds. Each process reports every shard, so that the maximum over the
// processes shows the shards that nobody holds.
type Metrics struct {
	takeovers *prometheus.CounterVec

	mu sync.Mutex
	// last are the last shards that this process has taken, and nil for those that it never held.
	last []*Held
	// otherNumber is true while the leader states another number of shards, so that this process may hold none.
	otherNumber bool
}

var _ prometheus.Collector = (*Metrics)(nil)

// NewMetrics creates the metrics for a number of shards, and registers them with r.
func NewMetrics(r prometheus.Registerer, shards int) *Metrics {
	m := &Metrics{last: make([]*Held, shards), takeovers: promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "herald_shard_takeovers_total",
		Help: "Take-overs of shards by this process, by shard. Absent with one shard.",
	}, []string{labelShard})}
	for shard := range shards {
		m.takeovers.WithLabelValues(placement.Name(shard))
	}
	r.MustRegister(m)
	return m
}

// Describe implements prometheus.Collector.
func (*Metrics) Describe(out chan<- *prometheus.Desc) { out <- heldDesc }

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.otherNumber {
		return
	}
	for shard, h := range m.last {
		value := 0.0
		if h != nil && h.Valid() && h.listed.Load() {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, value, placement.Name(shard))
	}
}

// acquired records that this process has taken over a shard.
func (m *Metrics) acquired(shard int, h *Held) {
	m.takeovers.WithLabelValues(placement.Name(shard)).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[shard] = h
}

// setStated records the number of shards that the leader states.
func (m *Metrics) setStated(shards int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.otherNumber = shards != len(m.last)
}
