// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/cmd/herald/internal/lease"
	"github.com/herald-social/herald/cmd/herald/internal/shards"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/controllers/media"
	"github.com/herald-social/herald/controllers/notifier"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/controllers/postschedule"
	"github.com/herald-social/herald/controllers/retention"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/rollback"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

//go:generate go test . -count=1 -run ^TestMetricsPage$ -args -update

var (
	update      = flag.Bool("update", false, "write the files that tests compare")
	metricsPage = filepath.Join("..", "..", "docs", "metrics.md")
	//go:embed testdata/metrics.md.tmpl
	metricsTemplate string
)

// metric describes a metric, as its collector does.
type metric struct {
	name, help string
	labels     []string
	kind       dto.MetricType
}

// metricsOf returns the metrics that each process registers.
func metricsOf(t *testing.T) map[string][]metric {
	t.Helper()
	manager, server := &collectors{}, &collectors{}
	transport.New(transport.Options{Registerer: manager})
	apiclock.New(apiclock.Options{Base: clock.RealClock{}, Registerer: manager})
	apiclock.New(apiclock.Options{Base: clock.RealClock{}, Registerer: server})
	post.NewMetrics(manager)
	unlisted.New(manager)
	connection.NewMetrics(manager, clock.RealClock{})
	media.NewMetrics(manager)
	notifier.NewMetrics(manager)
	postschedule.NewMetrics(manager)
	installation.NewWatch(nil, clock.RealClock{}, manager)
	rollback.New(rollback.Options{Registerer: manager})
	team.NewMetrics(manager)
	retention.NewMetrics(manager)
	manager.MustRegister(webhookServed(nil), &webhookTrust{}, lease.NewLeaderMetric(nil, nil))
	shards.NewMetrics(manager, 2)
	_, err := apiserver.New(apiserver.Config{
		Kubernetes: &rest.Config{}, SiteURL: "https://herald.example.com", Registry: server, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
		Capabilities: platforms.Registry{}.Capabilities,
		Web:          &apiserver.WebConfig{Namespace: "herald-system", SignInSecret: "herald-web"},
	})
	must.Succeed(t, err)
	return map[string][]metric{"manager": manager.metrics(t), "apiserver": server.metrics(t)}
}

// collectors stores the registered collectors.
type collectors struct{ all []prometheus.Collector }

// Register implements prometheus.Registerer.
func (c *collectors) Register(collector prometheus.Collector) error {
	c.all = append(c.all, collector)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (c *collectors) MustRegister(all ...prometheus.Collector) { c.all = append(c.all, all...) }

// Unregister implements prometheus.Registerer.
func (*collectors) Unregister(prometheus.Collector) bool { return false }

// description matches the string form of a prometheus.Desc, whose fields are private.
var description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), unit: "", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// metrics returns the registered metrics by name.
func (c *collectors) metrics(t *testing.T) (all []metric) {
	t.Helper()
	for _, collector := range c.all {
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			parts := description.FindStringSubmatch(desc.String())
			if parts == nil {
				t.Fatalf("cannot read %s", desc)
			}
			m := metric{kind: kindOf(collector)}
			var err error
			if m.name, err = strconv.Unquote(parts[1]); err != nil {
				t.Fatal(err)
			}
			if m.help, err = strconv.Unquote(parts[2]); err != nil {
				t.Fatal(err)
			}
			if parts[3] != "" {
				m.labels = strings.Split(parts[3], ",")
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return all
}

// kindOf returns the type of a collector's metrics. Our own collectors, which compute their values at scrape time, are
// gauges; the recorded run in test/monitoring proves it.
func kindOf(c prometheus.Collector) dto.MetricType {
	switch c.(type) {
	case *prometheus.CounterVec:
		return dto.MetricType_COUNTER
	case *prometheus.HistogramVec, prometheus.Histogram:
		return dto.MetricType_HISTOGRAM
	case prometheus.Gauge: // before Counter, because a gauge has its methods too
		return dto.MetricType_GAUGE
	case prometheus.Counter:
		return dto.MetricType_COUNTER
	default:
		return dto.MetricType_GAUGE
	}
}

// unit returns the unit in the name of a metric.
func (m *metric) unit() string {
	name := strings.TrimSuffix(m.name, "_total")
	switch {
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return "seconds since 1970"
	case strings.HasSuffix(name, "_bytes_per_second"):
		return "bytes a second"
	case strings.HasSuffix(name, "_seconds"):
		return "seconds"
	case strings.HasSuffix(name, "_bytes"):
		return "bytes"
	case strings.HasPrefix(m.help, "1 if "):
		return "0 or 1"
	default:
		return "number"
	}
}

// TestMetricsPage compares docs/metrics.md with the collectors.
func TestMetricsPage(t *testing.T) {
	page := metricsTemplate
	for process, metrics := range metricsOf(t) {
		var table bytes.Buffer
		table.WriteString("| metric | type, unit | labels | meaning |\n| --- | --- | --- | --- |\n")
		for i := range metrics {
			m := &metrics[i]
			labels := make([]string, len(m.labels))
			for i, label := range m.labels {
				labels[i] = "`" + label + "`"
			}
			fmt.Fprintf(&table, "| `%s` | %s, %s | %s | %s |\n", m.name, strings.ToLower(m.kind.String()), m.unit(),
				cmp.Or(strings.Join(labels, ", "), "none"), strings.ReplaceAll(m.help, "|", `\|`))
		}
		page = strings.Replace(page, "<!-- "+process+" -->\n", table.String(), 1)
	}
	if *update {
		must.Succeed(t, os.WriteFile(metricsPage, []byte(page), 0o644))
	}
	if got, err := os.ReadFile(metricsPage); err != nil || string(got) != page {
		t.Errorf("docs/metrics.md differs from the collectors; run: go generate ./cmd/herald (%v)", err)
	}
}

// TestMetricNames checks the naming conventions of Prometheus and of this project.
func TestMetricNames(t *testing.T) {
	seen := map[string]string{}
	for process, metrics := range metricsOf(t) {
		if len(metrics) == 0 {
			t.Errorf("the %s has no metrics", process)
		}
		for i := range metrics {
			m := &metrics[i]
			// Each process has its own clock.
			if other := seen[m.name]; other != "" && m.name != "herald_clock_skew_seconds" {
				t.Errorf("%s is a metric of the %s and of the %s", m.name, other, process)
			}
			seen[m.name] = process
			if !strings.HasPrefix(m.name, "herald_") {
				t.Errorf("%s does not start with herald_", m.name)
			}
			if !strings.HasSuffix(m.help, ".") || len(m.help) < 20 {
				t.Errorf("the help of %s is no sentence: %q", m.name, m.help)
			}
			for _, label := range m.labels {
				if !slices.Contains(boundedLabels, label) {
					t.Errorf("%s has the label %s, which is not in boundedLabels: its number of values must be limited", m.name, label)
				}
			}
			problems, err := promlint.NewWithMetricFamilies([]*dto.MetricFamily{family(m)}).Lint()
			if err != nil || len(problems) > 0 {
				t.Errorf("%s: %v, %v", m.name, problems, err)
			}
		}
	}
}

// boundedLabels are the labels with values from a fixed list, or with one value for each of a team's connections.
var boundedLabels = []string{
	"namespace", "connection", // one for each connected account
	"platform", "phase", "window", "outcome", "state", "reason", "kind", "queue", "answer", "action", "operation", "code", "method",
	"budget", // the fields of a team's budget
	"shard",  // at most 16
	"format", // of a Notifier: standard-webhooks, slack, email
	"why",    // why an input is not used: superseded, refused
	"for",    // the purpose of a wait for the store
}

// family returns a metric as it is scraped.
func family(m *metric) *dto.MetricFamily {
	one := &dto.Metric{}
	for _, label := range m.labels {
		one.Label = append(one.Label, &dto.LabelPair{Name: &label, Value: new("x")})
	}
	switch m.kind {
	case dto.MetricType_COUNTER:
		one.Counter = &dto.Counter{Value: new(0.0)}
	case dto.MetricType_HISTOGRAM:
		one.Histogram = &dto.Histogram{}
	default:
		one.Gauge = &dto.Gauge{Value: new(0.0)}
	}
	return &dto.MetricFamily{Name: &m.name, Help: &m.help, Type: &m.kind, Metric: []*dto.Metric{one}}
}

// TestPromisesHaveMetrics checks that each promise names a metric that measures it.
func TestPromisesHaveMetrics(t *testing.T) {
	labels := map[string][]string{}
	for metrics := range maps.Values(metricsOf(t)) {
		for _, m := range metrics {
			labels[m.name] = m.labels
		}
	}
	for promise, want := range map[string]struct {
		metric string
		labels []string
	}{
		"posts are published on time":          {"herald_schedule_lateness_seconds", nil},
		"late posts have a team":               {"herald_late_targets_total", []string{"namespace", "platform"}},
		"calls have outcomes":                  {"herald_publishes_total", []string{"platform", "outcome"}},
		"failures have a team and a reason":    {"herald_target_results_total", []string{"namespace", "platform", "state", "reason"}},
		"calls are not repeated":               {"herald_open_attempts", []string{"namespace", "platform", "window"}},
		"undecided targets are visible":        {"herald_undecided_targets", []string{"namespace", "platform"}},
		"due posts are published":              {"herald_due_posts", []string{"namespace"}},
		"tokens are renewed":                   {"herald_connection_token_expiry_seconds", []string{"namespace", "connection", "platform"}},
		"users are warned to reconnect":        {"herald_connection_reconnect_seconds", []string{"namespace", "connection", "platform"}},
		"each shard has a holder":              {"herald_shard_held", []string{"shard"}},
		"queues are short":                     {"herald_queue_depth", []string{"queue"}},
		"files are uploaded in time":           {"herald_late_uploads", []string{"namespace", "platform"}},
		"no app stops all teams unnoticed":     {"herald_app_held", []string{"platform"}},
		"new errors are detected on their day": {"herald_platform_unlisted_errors_total", []string{"platform", "operation", "code"}},
	} {
		if got, ok := labels[want.metric]; !ok || !slices.Equal(got, want.labels) {
			t.Errorf("%s: want %s with labels %v, got %v", promise, want.metric, want.labels, got)
		}
	}
}

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
		{"the service responds", nil, 1},
		{"the webhook is not listening yet, or has no certificate", os.ErrClosed, 0},
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
