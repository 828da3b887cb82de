// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sample is one line of Prometheus' text format.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// longestLine bounds a line of the format, in bytes.
const longestLine = 1 << 20

// ReadSamples reads the samples whose names are asked for.
func ReadSamples(from io.Reader, names ...string) ([]Sample, error) {
	var samples []Sample
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		line := lines.Text()
		end := strings.IndexAny(line, "{ ")
		if end < 0 || !slices.Contains(names, line[:end]) {
			continue
		}
		sample, err := parseSample(line)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample)
	}
	return samples, lines.Err()
}

// parseSample reads a line such as `name{a="b",c="d"} 1`.
func parseSample(line string) (Sample, error) {
	end := strings.IndexAny(line, "{ ")
	sample := Sample{Name: line[:end], Labels: map[string]string{}}
	rest := line[end:]
	for strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, ",") {
		rest = rest[1:]
		if strings.HasPrefix(rest, "}") {
			break
		}
		name, quoted, ok := strings.Cut(rest, "=")
		value, err := strconv.QuotedPrefix(quoted)
		if !ok || err != nil {
			return Sample{}, fmt.Errorf("the labels of %q cannot be read", line)
		}
		if sample.Labels[name], err = strconv.Unquote(value); err != nil {
			return Sample{}, fmt.Errorf("the labels of %q cannot be read: %w", line, err)
		}
		rest = quoted[len(value):]
	}
	fields := strings.Fields(strings.TrimPrefix(rest, "}"))
	if len(fields) == 0 {
		return Sample{}, fmt.Errorf("%q has no value", line)
	}
	var err error
	sample.Value, err = strconv.ParseFloat(fields[0], 64)
	return sample, err
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
func CountWrites(samples []Sample) (done, conflicts Writes) {
	done, conflicts = Writes{}, Writes{}
	for _, s := range samples {
		verb, writes := verbs[s.Labels["verb"]]
		if s.Name != RequestTotal || !writes {
			continue
		}
		what := s.Labels["resource"]
		if sub := s.Labels["subresource"]; sub != "" {
			what += "/" + sub
		}
		switch code := s.Labels["code"]; {
		case strings.HasPrefix(code, "2"):
			done[what+" "+verb] += s.Value
		case code == "409":
			conflicts[what+" "+verb] += s.Value
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

// HistogramQuantile returns the upper bound of the bucket below which lies the share q of what a histogram has counted,
// from the samples of its buckets; false if it has counted nothing.
func HistogramQuantile(buckets []Sample, q float64) (float64, bool) {
	counts := map[float64]float64{}
	for _, s := range buckets {
		bound, err := strconv.ParseFloat(s.Labels["le"], 64)
		if err != nil {
			continue
		}
		counts[bound] += s.Value
	}
	total := counts[math.Inf(1)]
	if total == 0 {
		return 0, false
	}
	for _, bound := range slices.Sorted(maps.Keys(counts)) {
		if counts[bound] >= q*total {
			return bound, true
		}
	}
	return 0, false
}
