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

// nearlyFull is from how many percent of a field of its budget on a team is told of.
const nearlyFull = 90

// Metrics tells how many teams have nearly used up their budgets. Which they are, their
// status says: a series for each team would be too many.
type Metrics struct {
	teams          *prometheus.GaugeVec
	suspendedGauge prometheus.Gauge

	mu   sync.Mutex
	full map[string][]v1alpha1.BudgetItem
	// suspendedTeams are the teams that are suspended.
	suspendedTeams map[string]bool
}

// NewMetrics returns metrics that are registered; nil registers none.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{full: map[string][]v1alpha1.BudgetItem{}, teams: promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "herald_teams_near_budget",
		Help: "Teams that have used 90 % of a field of their budget or more, by field. The manager that leads tells them.",
	}, []string{"budget"})}
	m.suspendedTeams = map[string]bool{}
	m.suspendedGauge = promauto.With(registry).NewGauge(prometheus.GaugeOpts{
		Name: "herald_suspended_teams",
		Help: "Teams that are suspended, by themselves or by the configuration: nothing of them is published. The manager that leads tells them.",
	})
	for _, item := range plan.BudgetItems {
		m.teams.WithLabelValues(string(item))
	}
	return m
}

// record notes what a team uses; nothing once it is gone.
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

// suspended notes whether a team is suspended, which one that is gone is not.
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
