// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// ReadFamily reads the samples of one name in Prometheus' text format.
func ReadFamily(from io.Reader, name string) ([]*dto.Metric, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(from)
	return families[name].GetMetric(), err
}

// Writes counts what a Kubernetes API server has written, by what and how, such as "posts/status update".
type Writes map[string]float64

// RequestTotal is the name of the API server's counter of requests.
const RequestTotal = "apiserver_request_total"

// verbs are those that write, as the API server's counter spells them.
var verbs = map[string]string{
	"POST": "create", "PUT": "update", "PATCH": "patch", "APPLY": "apply", "DELETE": "delete", "DELETECOLLECTION": "deletecollection",
}

// CountWrites counts the writes that succeeded among the samples of RequestTotal, and those refused as conflicts apart.
func CountWrites(samples []*dto.Metric) (done, conflicts Writes) {
	done, conflicts = Writes{}, Writes{}
	for _, sample := range samples {
		labels := map[string]string{}
		for _, label := range sample.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		verb, writes := verbs[labels["verb"]]
		if !writes {
			continue
		}
		what := labels["resource"]
		if sub := labels["subresource"]; sub != "" {
			what += "/" + sub
		}
		switch code := labels["code"]; {
		case strings.HasPrefix(code, "2"):
			done[what+" "+verb] += sample.GetCounter().GetValue()
		case code == "409":
			conflicts[what+" "+verb] += sample.GetCounter().GetValue()
		}
	}
	return done, conflicts
}

// Since returns what was counted after before.
func (w Writes) Since(before Writes) Writes {
	delta := Writes{}
	for key, value := range w {
		if value > before[key] {
			delta[key] = value - before[key]
		}
	}
	return delta
}

// Of sums up what belongs to a resource and its subresources, but for the given verbs.
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

// Per divides every count, for output.
func (w Writes) Per(n int) map[string]float64 {
	out := map[string]float64{}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		out[key] = Rounded(w[key]/float64(n), 3)
	}
	return out
}
