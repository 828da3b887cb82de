// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// TestAlerts compares the alert rules with the metrics: a rule about a metric or label that does not exist never fires.
func TestAlerts(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "prometheus", "rules-connections.yaml"))
	must.Succeed(t, err)
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	must.Succeed(t, yaml.Unmarshal(content, &rules))
	exported := exported(t)
	metric, by := regexp.MustCompile(`herald_[a-z_]+`), regexp.MustCompile(`by \(([a-z, ]+)\)`)
	label := regexp.MustCompile(`\$labels\.([a-z]+)`)
	n := 0
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			n++
			names := metric.FindAllString(rule.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s is about no metric of Herald's", rule.Alert)
			}
			for _, name := range names {
				if exported[name] == nil {
					t.Errorf("%s uses %s, which is not exported", rule.Alert, name)
				}
				for _, kept := range by.FindAllStringSubmatch(rule.Expr, -1) {
					for _, used := range label.FindAllStringSubmatch(rule.Annotations["summary"]+rule.Annotations["description"], -1) {
						if !slices.Contains(exported[name], used[1]) || !regexp.MustCompile(`\b`+used[1]+`\b`).MatchString(kept[1]) {
							t.Errorf("%s uses the label %s, which its series lack", rule.Alert, used[1])
						}
					}
				}
			}
			if _, err := time.ParseDuration(rule.For); err != nil || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s lacks a duration, a severity, a summary or a description", rule.Alert)
			}
		}
	}
	if n == 0 {
		t.Error("the rules are missing")
	}
}

// exported returns the labels of each metric of connections.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry, clocktesting.NewFakePassiveClock(noon))
	c := ending(conn("Connected"), time.Hour)
	c.Status.ReconnectBy = v1alpha1.NewTimePtr(noon.Add(time.Hour))
	m.set(c)
	families, err := registry.Gather()
	must.Succeed(t, err)
	labels := map[string][]string{}
	for _, family := range families {
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels[family.GetName()] = append(labels[family.GetName()], pair.GetName())
		}
	}
	return labels
}
