// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/plan"
)

// nearlyFull is the percentage of a budget field that counts as near the budget.
const nearlyFull = 90

// Metrics counts the teams that are near their budgets or suspended, without names: a series per team would be too
// many.
type Metrics struct {
	teams          *prometheus.GaugeVec
	suspendedGauge prometheus.Gauge

	mu             sync.Mutex
	full           map[string][]v1alpha1.BudgetItem
	suspendedTeams map[string]bool
}

// NewMetrics creates the metrics and registers them with registry, unless that is nil.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{full: map[string][]v1alpha1.BudgetItem{}, teams: promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "herald_teams_near_budget",
		Help: "Teams that have used 90 % of a field of their budget or more, by field. Reported by the leader.",
	}, []string{"budget"})}
	m.suspendedTeams = map[string]bool{}
	m.suspendedGauge = promauto.With(registry).NewGauge(prometheus.GaugeOpts{
		Name: "herald_suspended_teams",
		Help: "Teams that are suspended by their spec, by the configuration or by a move to another shard: none of their posts is published. " +
			"Reported by the leader.",
	})
	for _, item := range plan.BudgetItems {
		m.teams.WithLabelValues(string(item))
	}
	return m
}

// record records a team's usage. Nil removes the team.
func (m *Metrics) record(team string, uses []v1alpha1.BudgetUse) {
	var full []v1alpha1.BudgetItem
	for _, u := range uses {
		if u.Percent() >= nearlyFull {
			full = append(full, u.Item)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, item := range m.full[team] {
		m.teams.WithLabelValues(string(item)).Dec()
	}
	for _, item := range full {
		m.teams.WithLabelValues(string(item)).Inc()
	}
	if m.full[team] = full; len(full) == 0 {
		delete(m.full, team)
	}
}

// suspended records whether a team is suspended. A deleted team is not.
func (m *Metrics) suspended(team string, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is {
		m.suspendedTeams[team] = true
	} else {
		delete(m.suspendedTeams, team)
	}
	m.suspendedGauge.Set(float64(len(m.suspendedTeams)))
}
