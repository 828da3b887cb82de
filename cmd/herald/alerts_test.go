// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/test/must"
)

// TestWebhookAlert compares the rule about the webhook with its metric: a rule about a metric that does not exist never
// fires.
func TestWebhookAlert(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "prometheus", "rules-manager.yaml"))
	must.Succeed(t, err)
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	must.Succeed(t, yaml.Unmarshal(data, &rules))
	registry := prometheus.NewRegistry()
	serving := error(nil)
	registry.MustRegister(webhookServed(func() error { return serving }))
	for _, tc := range []struct {
		reason string
		err    error
		want   float64
	}{
		{"it answers", nil, 1},
		{"it does not listen yet, or has no certificate", os.ErrClosed, 0},
	} {
		serving = tc.err
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatalf("got %d metrics, %v", len(families), err)
		}
		if got := families[0].GetMetric()[0].GetGauge().GetValue(); got != tc.want {
			t.Errorf("%s: got %v", tc.reason, got)
		}
		if want := "min by (namespace, pod) (" + families[0].GetName() + ") == 0"; rules.Spec.Groups[0].Rules[0].Expr != want {
			t.Errorf("the rule is %q, want %q", rules.Spec.Groups[0].Rules[0].Expr, want)
		}
	}
}
