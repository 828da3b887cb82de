// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts and the dashboard with Prometheus itself: each alert fires in its test cases, and
// each panel of the dashboard shows data from a recorded run of the real processes.
package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// Alert is an alerting rule in config/prometheus.
type Alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Group is a group of rules in Prometheus's format.
type Group struct {
	Name  string  `json:"name"`
	Rules []Alert `json:"rules"`
}

// Groups reads a checkout's rules in config/prometheus.
func Groups(checkout string) ([]Group, error) {
	files, err := filepath.Glob(filepath.Join(checkout, "config", "prometheus", "rules-*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var groups []Group
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var rule struct {
			Spec struct {
				Groups []Group `json:"groups"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(text, &rule); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		groups = append(groups, rule.Spec.Groups...)
	}
	return groups, nil
}
