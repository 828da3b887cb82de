// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/test/must"
)

const (
	recorded = "testdata/recorded.txt"
	// rateInterval is Grafana's $__rate_interval for scraping every ten seconds, rounded up.
	rateInterval = "1m"
	allTeams     = ".*"
)

// recording reads the recorded run.
func recording(t *testing.T) *Recording {
	t.Helper()
	text, err := os.ReadFile(recorded)
	must.Succeed(t, err)
	r, err := Read(bytes.NewReader(text))
	must.Succeed(t, err)
	return r
}

// unrecorded lists metrics without series in the recorded run: the simulated platforms return only errors that Herald
// knows, and the run has one shard and no schedules or notifiers.
var unrecorded = []string{
	"herald_platform_unlisted_errors_total", "herald_schedule_posts_total",
	"herald_notifications_total", "herald_notifiers_failing", "herald_notification_oldest_seconds",
	"herald_shard_held", "herald_shard_takeovers_total",
}

// TestRecordingCoversAllMetrics checks that the recording contains the current metrics, because a recording made before
// a metric was renamed proves nothing.
func TestRecordingCoversAllMetrics(t *testing.T) {
	r, metrics := recording(t), documented(t)
	seen := map[string]bool{}
	for series := range r.Series {
		name, _, _ := strings.Cut(series, "{")
		seen[name] = true
		if strings.HasPrefix(name, "herald_") && !metrics[name] {
			t.Errorf("%s was recorded, and docs/metrics.md does not have it", name)
		}
	}
	for name := range metrics {
		if !seen[name] && !seen[name+"_count"] && !slices.Contains(unrecorded, name) {
			t.Errorf("%s was not recorded; run `make record-monitoring`", name)
		}
	}
}

// TestEachPanelDraws loads the recorded run into a real Prometheus and runs each panel's queries.
func TestEachPanelDraws(t *testing.T) {
	d, err := ReadDashboard(checkout)
	must.Succeed(t, err)
	r := recording(t)
	server := replay(t, r)
	for i := range d.Panels {
		p := &d.Panels[i]
		for _, q := range p.Targets {
			if slices.ContainsFunc(unrecorded, func(metric string) bool { return strings.Contains(q.Expr, metric) }) {
				continue
			}
			if why := q.draws(t, server, r, allTeams); why != "" {
				t.Errorf("%s, query %s: %s", p.Title, q.RefID, why)
			}
		}
	}
}

// TestPanelsAreSeparatedByTeam checks that a team's panels do not show another team's data.
func TestPanelsAreSeparatedByTeam(t *testing.T) {
	d, err := ReadDashboard(checkout)
	must.Succeed(t, err)
	r := recording(t)
	server := replay(t, r)
	for i := range d.Panels {
		for _, q := range d.Panels[i].Targets {
			if !strings.Contains(q.Expr, "$namespace") {
				continue
			}
			results, err := server.Query(t.Context(), q.filled(r, "team-none"), r.To())
			must.Succeed(t, err)
			for n := range results {
				numbers, err := results[n].Numbers()
				if err != nil || numbers[r.To().Unix()] != 0 {
					t.Errorf("%s, query %s: a team that does not exist has %v, %v", d.Panels[i].Title, q.RefID, numbers, err)
				}
			}
		}
	}
}

// filled returns a query as Grafana would send it.
func (q *Target) filled(r *Recording, team string) string {
	return strings.NewReplacer(
		"$namespace", team, "$__rate_interval", rateInterval, "$__range", r.To().Sub(r.From).String(),
	).Replace(q.Expr)
}

// draws runs a query and returns the problem with the result, or "". A panel that shows only zeros would look the
// same with a wrong query.
func (q *Target) draws(t *testing.T, server Server, r *Recording, team string) string {
	t.Helper()
	ask := func() ([]Result, error) {
		if q.Instant {
			return server.Query(t.Context(), q.filled(r, team), r.To())
		}
		return server.QueryRange(t.Context(), q.filled(r, team), r.From, r.To(), r.Step)
	}
	results, err := ask()
	if err != nil {
		return err.Error()
	}
	points, nonzero := 0, false
	for i := range results {
		numbers, err := results[i].Numbers()
		if err != nil {
			return err.Error()
		}
		for _, n := range numbers {
			if !math.IsNaN(n) && !math.IsInf(n, 0) {
				points++
				nonzero = nonzero || n != 0
			}
		}
	}
	switch {
	case points == 0 || !q.Instant && points < 2:
		return "the panel is empty: " + q.filled(r, team)
	case !nonzero && !strings.HasSuffix(q.Expr, "== 0") && !q.calm():
		return "the panel shows only zeros: " + q.filled(r, team)
	default:
		return ""
	}
}

// calm reports whether a query is only about failures that the run does not contain. For these, the test can only check
// that the series exist.
func (q *Target) calm() bool {
	names := heraldMetric.FindAllString(q.Expr, -1)
	for _, name := range names {
		switch name {
		case "herald_bucket_foreign", "herald_clock_skew_seconds", "herald_cluster_rewound_timestamp_seconds", "herald_connections_ignoring_credentials", "herald_posts_waiting_for_store",
			"herald_records_abandoned_total", "herald_retention_failures_total", "herald_retention_lag_seconds":
		default:
			return false
		}
	}
	return len(names) > 0
}

// replay starts a Prometheus with a recording until the test ends.
func replay(t *testing.T, r *Recording) Server {
	t.Helper()
	promtool, prometheus := program(t, "promtool"), program(t, "prometheus")
	folder := t.TempDir()
	text := filepath.Join(folder, "recorded.om")
	file, err := os.Create(text)
	must.Succeed(t, err)
	must.Succeed(t, errors.Join(r.OpenMetrics(file), file.Close()))
	data := filepath.Join(folder, "data")
	run(t, promtool, "tsdb", "create-blocks-from", "openmetrics", text, data)
	config := filepath.Join(folder, "prometheus.yaml")
	write(t, config, map[string]any{"global": map[string]any{}})
	address := ports.ForTest(t)
	// Stop it before the directory is removed. The test's own context is cancelled too early for that.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	server := exec.CommandContext(ctx, prometheus, "--config.file="+config, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+address, "--log.level=error")
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	server.Stderr = t.Output()
	must.Succeed(t, server.Start())
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // killed by the test
	})
	s := Server{URL: "http://" + address}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return s.Ready(ctx) == nil, nil
	})
	if err != nil {
		t.Fatalf("Prometheus is not ready: %v", err)
	}
	return s
}
