// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

const (
	runbooks    = "../../docs/runbooks"
	runbookURL  = "https://github.com/herald-social/herald/blob/main/docs/runbooks/"
	runbookList = "README.md"
)

// pages returns the runbooks, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	must.Succeed(t, err)
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// TestEachAlertHasARunbook checks that every alert has a runbook, and that every runbook belongs to an alert.
func TestEachAlertHasARunbook(t *testing.T) {
	groups, err := Groups(checkout)
	must.Succeed(t, err)
	books := pages(t)
	list := books[runbookList]
	delete(books, runbookList)
	for _, group := range groups {
		for _, rule := range group.Rules {
			name := rule.Alert + ".md"
			if want := runbookURL + name; rule.Annotations["runbook_url"] != want {
				t.Errorf("%s names the page %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
			}
			for _, wanted := range []string{"summary", "description"} {
				if !strings.ContainsAny(rule.Annotations[wanted], " ") {
					t.Errorf("%s has no %s", rule.Alert, wanted)
				}
			}
			if s := rule.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("%s has severity %q", rule.Alert, s)
			}
			text, ok := books[name]
			if !ok {
				t.Errorf("docs/runbooks/%s does not exist", name)
			}
			delete(books, name)
			for _, want := range []string{"# " + rule.Alert + "\n", "\n## Meaning\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## Mitigation\n", "```promql\n", "```sh\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("docs/runbooks/%s has no %q", name, want)
				}
			}
			if !strings.Contains(list, "["+rule.Alert+"]("+name+")") {
				t.Errorf("docs/runbooks/%s does not list %s", runbookList, rule.Alert)
			}
		}
	}
	for name := range books {
		t.Errorf("docs/runbooks/%s does not belong to an alert", name)
	}
}

var (
	queries = regexp.MustCompile("(?s)```promql\n(.*?)```")
	comment = regexp.MustCompile(`\s+#.*$`)
)

// TestQueriesOfRunbooks evaluates the queries of each runbook in Prometheus, because an incident leaves no time to
// repair them.
func TestQueriesOfRunbooks(t *testing.T) {
	r := recording(t)
	server := replay(t, r)
	metrics, books := documented(t), pages(t)
	for _, name := range slices.Sorted(maps.Keys(books)) {
		for _, block := range queries.FindAllStringSubmatch(books[name], -1) {
			for query := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n") {
				query = comment.ReplaceAllString(query, "")
				if _, err := server.Query(t.Context(), query, r.To()); err != nil {
					t.Errorf("docs/runbooks/%s: %v", name, err)
				}
				for _, metric := range heraldMetric.FindAllString(query, -1) {
					if !metrics[metric] {
						t.Errorf("docs/runbooks/%s queries %s, which is not in docs/metrics.md", name, metric)
					}
				}
			}
		}
	}
}
