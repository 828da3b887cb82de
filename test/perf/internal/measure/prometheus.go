// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Writes counts the writes to a Kubernetes API server, by resource and verb, such as "posts/status update".
type Writes map[string]float64

// requestTotal is the API server's counter of requests.
const requestTotal = "apiserver_request_total"

// verbs are the verbs that write, as the API server's counter spells them.
var verbs = map[string]string{
	"POST": "create", "PUT": "update", "PATCH": "patch", "APPLY": "apply", "DELETE": "delete", "DELETECOLLECTION": "deletecollection",
}

// heapAlloc is the gauge of the bytes on a Go program's heap.
const heapAlloc = "go_memstats_heap_alloc_bytes"

// Heap returns the size of a Go program's heap in bytes, from its metrics in the Prometheus text format.
func Heap(metrics io.Reader) (float64, error) {
	families, err := parse(metrics)
	if err != nil {
		return 0, err
	}
	samples := families[heapAlloc].GetMetric()
	if len(samples) != 1 {
		return 0, fmt.Errorf("the metrics contain %s %d times, want once", heapAlloc, len(samples))
	}
	return samples[0].GetGauge().GetValue(), nil
}

func parse(metrics io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(metrics)
}

// Sum adds up the samples of a gauge that have the given labels, from metrics in the Prometheus text format.
func Sum(metrics io.Reader, name string, labels map[string]string) (sum float64, err error) {
	families, err := parse(metrics)
	if err != nil {
		return 0, err
	}
	for _, sample := range families[name].GetMetric() {
		found := labelsOf(sample)
		matches := true
		for label, value := range labels {
			matches = matches && found[label] == value
		}
		if matches {
			sum += sample.GetGauge().GetValue()
		}
	}
	return sum, nil
}

func labelsOf(sample *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, label := range sample.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	return labels
}

// SumWrites counts the successful writes, from an API server's metrics in the Prometheus text format.
func SumWrites(metrics io.Reader) (Writes, error) {
	families, err := parse(metrics)
	if err != nil {
		return nil, err
	}
	done := Writes{}
	for _, sample := range families[requestTotal].GetMetric() {
		labels := labelsOf(sample)
		verb, writes := verbs[labels["verb"]]
		if !writes || !strings.HasPrefix(labels["code"], "2") {
			continue
		}
		what := labels["resource"]
		if sub := labels["subresource"]; sub != "" {
			what += "/" + sub
		}
		done[what+" "+verb] += sample.GetCounter().GetValue()
	}
	return done, nil
}

// Since returns the increase since before.
func (w Writes) Since(before Writes) Writes {
	delta := Writes{}
	for key, value := range w {
		if value > before[key] {
			delta[key] = value - before[key]
		}
	}
	return delta
}

// Of adds up the writes to a resource and its subresources, except those with the given verbs.
func (w Writes) Of(resource string, except ...string) float64 {
	var sum float64
	for key, value := range w {
		what, verb, _ := strings.Cut(key, " ")
		if name, _, _ := strings.Cut(what, "/"); name == resource && !slices.Contains(except, verb) {
			sum += value
		}
	}
	return sum
}

// Per divides every count by n, for output.
func (w Writes) Per(n int) map[string]float64 {
	out := map[string]float64{}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		out[key] = Rounded(w[key]/float64(n), 3)
	}
	return out
}
