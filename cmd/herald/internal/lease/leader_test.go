// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/herald-social/herald/test/must"
)

func TestLeads(t *testing.T) {
	elected, stopping := make(chan struct{}), make(chan struct{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewLeaderMetric(elected, stopping))
	for _, tc := range []struct {
		reason string
		then   func()
		want   float64
	}{
		{"the candidate waits", func() {}, 0},
		{"the leader works", func() { close(elected) }, 1},
		{"the leader has released its lease, and finishes its calls in progress", func() { close(stopping) }, 0},
	} {
		tc.then()
		families, err := registry.Gather()
		must.Succeed(t, err)
		if got := families[0].GetMetric()[0].GetGauge().GetValue(); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
		}
	}
}
