// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

// Metrics exposes the state of connections. It is a prometheus.Collector: token lifetimes are computed at scrape time.
type Metrics struct {
	clock     clock.PassiveClock
	ready     *prometheus.Desc
	expiry    *prometheus.Desc
	reconnect *prometheus.Desc
	ignored   *prometheus.Desc

	mu          sync.Mutex
	connections map[types.NamespacedName]connectionMetrics
}

type connectionMetrics struct {
	platform string
	disabled bool
	ready    bool
	expires  time.Time
	// reconnectBy is when the token can no longer be renewed.
	reconnectBy time.Time
	// ignores is the label value for the reason why the user's Secret is not used, or "" if it is used.
	ignores string
}

// Values of the label that explains why the user's Secret is not used.
const (
	ignoresSuperseded = "superseded"
	ignoresRefused    = "refused"
)

var _ prometheus.Collector = (*Metrics)(nil)

// NewMetrics creates the metrics and registers them with r, unless r is nil. It panics if they are already registered.
func NewMetrics(r prometheus.Registerer, c clock.PassiveClock) *Metrics {
	labels := []string{"namespace", "connection", "platform"}
	m := &Metrics{
		clock: c,
		ready: prometheus.NewDesc("herald_connection_ready",
			"1 if the account can be published to, else 0. Absent while the connection is disabled.", labels, nil),
		expiry: prometheus.NewDesc("herald_connection_token_expiry_seconds",
			"Seconds until the access token expires, negative afterwards. Absent if it does not expire.", labels, nil),
		reconnect: prometheus.NewDesc("herald_connection_reconnect_seconds",
			"Seconds until the account's token can no longer be renewed and a user must reconnect the account, negative afterwards. "+
				"Absent if that time is unknown.", labels, nil),
		ignored: prometheus.NewDesc("herald_connections_ignoring_credentials",
			"Connections that use their current tokens instead of those in their Secret, by the team's namespace and by reason: "+
				"superseded (Herald has newer ones) or refused (the platform does not accept them, or they belong to another account).", []string{"namespace", "why"}, nil),
		connections: map[types.NamespacedName]connectionMetrics{},
	}
	if r != nil {
		r.MustRegister(m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.ready
	ch <- m.expiry
	ch <- m.reconnect
	ch <- m.ignored
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	ignoring := map[[2]string]int{}
	for name, s := range m.connections {
		for _, why := range []string{ignoresSuperseded, ignoresRefused} {
			if key := [2]string{name.Namespace, why}; s.ignores == why {
				ignoring[key]++
			} else {
				ignoring[key] += 0 // every series starts at zero
			}
		}
		if !s.disabled {
			ready := 0.0
			if s.ready {
				ready = 1
			}
			ch <- prometheus.MustNewConstMetric(m.ready, prometheus.GaugeValue, ready, name.Namespace, name.Name, s.platform)
		}
		for desc, at := range map[*prometheus.Desc]time.Time{m.expiry: s.expires, m.reconnect: s.reconnectBy} {
			if !at.IsZero() {
				ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, at.Sub(now).Seconds(), name.Namespace, name.Name, s.platform)
			}
		}
	}
	for of, n := range ignoring {
		ch <- prometheus.MustNewConstMetric(m.ignored, prometheus.GaugeValue, float64(n), of[0], of[1])
	}
}

func (m *Metrics) set(conn *v1alpha1.Connection) {
	s := connectionMetrics{platform: string(conn.Spec.Platform), disabled: conn.Spec.Disabled, ready: conditions.IsReady(conn.Status.Conditions)}
	if ends := conn.Status.TokenExpiresAt; ends != nil {
		s.expires = ends.Time
	}
	if by := conn.Status.ReconnectBy; by != nil {
		s.reconnectBy = by.Time
	}
	switch {
	case meta.IsStatusConditionTrue(conn.Status.Conditions, v1alpha1.ConditionCredentialsRefused):
		s.ignores = ignoresRefused
	case meta.IsStatusConditionTrue(conn.Status.Conditions, v1alpha1.ConditionCredentialsSuperseded):
		s.ignores = ignoresSuperseded
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections[types.NamespacedName{Namespace: conn.Namespace, Name: conn.Name}] = s
}

func (m *Metrics) drop(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.connections, name)
}
