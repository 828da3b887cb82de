// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedianAndQuantile(t *testing.T) {
	tests := map[string]struct {
		reason      string
		values      []float64
		median, p99 float64
	}{
		"none":      {"nothing was measured", nil, 0, 0},
		"one":       {"it is all there is", []float64{3}, 3, 3},
		"odd":       {"the one in the middle, wherever it stands", []float64{9, 1, 2}, 2, 9},
		"even":      {"the mean of the two in the middle", []float64{4, 1, 2, 9}, 3, 9},
		"a hundred": {"one of a hundred lies above the 99th percentile", upTo(100), 50.5, 99},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Median(tc.values); got != tc.median {
				t.Errorf("Median is %v, want %v: %s", got, tc.median, tc.reason)
			}
			if got := Quantile(tc.values, 0.99); got != tc.p99 {
				t.Errorf("Quantile is %v, want %v: %s", got, tc.p99, tc.reason)
			}
		})
	}
}

func upTo(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i + 1)
	}
	return values
}

const scraped = `# HELP apiserver_request_total Counter
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="posts",subresource="status",verb="PUT"} 10
apiserver_request_total{code="200",resource="posts",subresource="",verb="GET"} 99
apiserver_request_total{code="409",resource="posts",subresource="status",verb="PUT"} 3
apiserver_request_total{code="201",resource="posts",subresource="",verb="POST"} 5
apiserver_request_total{code="201",resource="events",subresource="",verb="POST"} 2
apiserver_request_total_other{code="201",resource="events",subresource="",verb="POST"} 7
late_bucket{le="0.01"} 98
late_bucket{le="0.05"} 99
late_bucket{le="+Inf"} 100
odd{note="a \"b\", {c}"} 1
`

func TestCountWrites(t *testing.T) {
	samples, err := ReadSamples(strings.NewReader(scraped), RequestTotal)
	if err != nil {
		t.Fatal(err)
	}
	done, conflicts := CountWrites(samples)
	if diff := cmp.Diff(Writes{"posts/status update": 10, "posts create": 5, "events create": 2}, done); diff != "" {
		t.Errorf("reads and failures are not writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Writes{"posts/status update": 3}, conflicts); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	delta := done.Since(Writes{"posts/status update": 4, "posts create": 5})
	if diff := cmp.Diff(Writes{"posts/status update": 6, "events create": 2}, delta); diff != "" {
		t.Errorf("what did not grow is left out (-want +got):\n%s", diff)
	}
	if got := done.Of("posts", "create"); got != 10 {
		t.Errorf("a post's writes are %v, want those of its status without its creation", got)
	}
}

func TestReadSamplesUnescapesLabels(t *testing.T) {
	samples, err := ReadSamples(strings.NewReader(scraped), "odd")
	if err != nil || len(samples) != 1 || samples[0].Labels["note"] != `a "b", {c}` || samples[0].Value != 1 {
		t.Errorf("got %v, %v", samples, err)
	}
}

func TestHistogramQuantile(t *testing.T) {
	samples, err := ReadSamples(strings.NewReader(scraped), "late_bucket")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason  string
		samples []Sample
		q, want float64
		ok      bool
	}{
		"p50":   {"the first bucket holds half of all", samples, 0.5, 0.01, true},
		"p99":   {"the bucket that completes the share counts", samples, 0.99, 0.05, true},
		"max":   {"what lies above every bound is only known to", samples, 1, math.Inf(1), true},
		"empty": {"nothing counted is not zero", nil, 0.5, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := HistogramQuantile(tc.samples, tc.q)
			if got != tc.want || ok != tc.ok {
				t.Errorf("got %v, %v, want %v, %v: %s", got, ok, tc.want, tc.ok, tc.reason)
			}
		})
	}
}
