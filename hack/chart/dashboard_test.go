// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// TestDashboardMatchesGrafanasTypes decodes the dashboard with Grafana's own types: an unknown or missing option would show
// up as an empty panel.
func TestDashboardMatchesGrafanasTypes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartFolder, "files", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	plugins.RegisterDefaultPlugins()
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(text); err != nil {
		t.Errorf("unknown or missing fields:\n%v", err)
	}
	if err := d.Validate(); err != nil {
		t.Errorf("invalid values:\n%v", err)
	}
	if len(d.Panels) == 0 {
		t.Error("the dashboard has no panels")
	}
}
