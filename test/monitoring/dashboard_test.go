// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

const (
	row24       = "row"
	columns     = 24
	ownVariable = "${datasource}"
)

var (
	heraldMetric = regexp.MustCompile(`herald_[a-z0-9_]+`)
	variable     = regexp.MustCompile(`\$\{?(\w+)`)
	ofLabel      = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// documented returns the metrics in docs/metrics.md, including the series of histograms.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(checkout, "docs", "metrics.md"))
	must.Succeed(t, err)
	all := map[string]bool{}
	for _, found := range regexp.MustCompile("(?m)^\\| `(herald_[a-z_]+)` \\| (\\w+),").FindAllStringSubmatch(string(page), -1) {
		all[found[1]] = true
		if found[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				all[found[1]+suffix] = true
			}
		}
	}
	return all
}

// TestRulesUseExistingMetrics checks that the rules use metrics that exist. A rule with any other metric never fires.
func TestRulesUseExistingMetrics(t *testing.T) {
	groups, err := Groups(checkout)
	must.Succeed(t, err)
	metrics := documented(t)
	for _, group := range groups {
		for _, rule := range group.Rules {
			names := heraldMetric.FindAllString(rule.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s does not name a metric of Herald", rule.Alert)
			}
			for _, name := range names {
				if !metrics[name] {
					t.Errorf("%s uses %s, which is not in docs/metrics.md", rule.Alert, name)
				}
			}
		}
	}
}

// TestDashboard checks what Grafana and readers require of the dashboard.
func TestDashboard(t *testing.T) {
	d, err := ReadDashboard(checkout)
	must.Succeed(t, err)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 39 {
		t.Errorf("the dashboard has uid %q, title %q, schema version %d", d.UID, d.Title, d.SchemaVersion)
	}
	known := []string{"__range", "__rate_interval", "datasource"}
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
	}
	metrics, ids, titles := documented(t), map[int]bool{}, map[string]bool{}
	for i := range d.Panels {
		p := &d.Panels[i]
		if ids[p.ID] || titles[p.Title] || p.Title == "" {
			t.Errorf("panel %d (%s): the id and the title must be unique", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Type != row24 {
			p.check(t, metrics, known)
		}
		for n := range d.Panels[:i] {
			if p.overlaps(&d.Panels[n]) {
				t.Errorf("%s overlaps %s", p.Title, d.Panels[n].Title)
			}
		}
	}
}

func (p *Panel) overlaps(o *Panel) bool {
	a, b := &p.GridPos, &o.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

// check checks a panel's requirements.
func (p *Panel) check(t *testing.T, metrics map[string]bool, known []string) {
	t.Helper()
	if g := &p.GridPos; g.X < 0 || g.W < 1 || g.H < 1 || g.X+g.W > columns {
		t.Errorf("%s exceeds the grid: %+v", p.Title, *g)
	}
	if len(p.Description) < 20 || !strings.HasSuffix(p.Description, ".") {
		t.Errorf("%s needs a description: %q", p.Title, p.Description)
	}
	if p.Type != "table" && p.FieldConfig.Defaults.Unit == "" {
		t.Errorf("%s has no unit", p.Title)
	}
	if p.Datasource.UID != ownVariable || len(p.Targets) == 0 {
		t.Errorf("%s has the data source %q and %d queries", p.Title, p.Datasource.UID, len(p.Targets))
	}
	if p.Type == "stat" && len(p.FieldConfig.Defaults.Thresholds.Steps) < 2 {
		t.Errorf("the colour of %s has no thresholds", p.Title)
	}
	var refs []string
	for _, q := range p.Targets {
		if slices.Contains(refs, q.RefID) || q.Datasource.UID != ownVariable || q.Instant == q.Range {
			t.Errorf("%s, query %s: the letter must be unique, the data source the variable, and the query instant or a range", p.Title, q.RefID)
		}
		refs = append(refs, q.RefID)
		for _, name := range heraldMetric.FindAllString(q.Expr, -1) {
			if !metrics[name] {
				t.Errorf("%s queries %s, which is not in docs/metrics.md", p.Title, name)
			}
		}
		for _, found := range variable.FindAllStringSubmatch(q.Expr, -1) {
			if !slices.Contains(known, found[1]) {
				t.Errorf("%s uses the undefined variable $%s", p.Title, found[1])
			}
		}
		for _, found := range ofLabel.FindAllStringSubmatch(q.LegendFormat, -1) {
			if !regexp.MustCompile(`by \([a-z, ]*\b` + found[1] + `\b`).MatchString(q.Expr) {
				t.Errorf("the legend of %s contains the label %s, which its query drops", p.Title, found[1])
			}
		}
	}
}
