// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedianAndQuantile(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		values      []float64
		median, p99 float64
	}{
		"none":      {"no measurement", nil, 0, 0},
		"one":       {"one value is median and percentile", []float64{3}, 3, 3},
		"odd":       {"the median is the middle of the sorted values", []float64{9, 1, 2}, 2, 9},
		"even":      {"the mean of the two in the middle", []float64{4, 1, 2, 9}, 3, 9},
		"a hundred": {"one of a hundred is above the 99th percentile", upTo(100), 50.5, 99},
	} {
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
# TYPE apiserver_request_total_other counter
apiserver_request_total_other{code="201",resource="events",subresource="",verb="POST"} 7
# TYPE go_memstats_heap_alloc_bytes gauge
go_memstats_heap_alloc_bytes 1.048576e+06
# TYPE apiserver_flowcontrol_current_inqueue_requests gauge
apiserver_flowcontrol_current_inqueue_requests{flow_schema="service-accounts",priority_level="workload-low"} 40
apiserver_flowcontrol_current_inqueue_requests{flow_schema="other",priority_level="workload-low"} 2
apiserver_flowcontrol_current_inqueue_requests{flow_schema="herald",priority_level="herald"} 7
`

func TestHeap(t *testing.T) {
	if got, err := Heap(strings.NewReader(scraped)); err != nil || got != 1<<20 {
		t.Errorf("the heap is %v (%v), want the gauge's value", got, err)
	}
	if got, err := Heap(strings.NewReader("# TYPE other gauge\nother 7\n")); err == nil {
		t.Errorf("the heap is %v without a gauge, want an error", got)
	}
}

func TestSum(t *testing.T) {
	for level, want := range map[string]float64{"workload-low": 42, "herald": 7, "catch-all": 0} {
		got, err := Sum(strings.NewReader(scraped), "apiserver_flowcontrol_current_inqueue_requests", map[string]string{"priority_level": level})
		if err != nil || got != want {
			t.Errorf("%v requests wait at %s (%v), want %v", got, level, err, want)
		}
	}
}

func TestCountWrites(t *testing.T) {
	done, err := SumWrites(strings.NewReader(scraped))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Writes{"posts/status update": 10, "posts create": 5, "events create": 2}, done); diff != "" {
		t.Errorf("reads and failures are not writes (-want +got):\n%s", diff)
	}
	delta := done.Since(Writes{"posts/status update": 4, "posts create": 5})
	if diff := cmp.Diff(Writes{"posts/status update": 6, "events create": 2}, delta); diff != "" {
		t.Errorf("unchanged values are omitted (-want +got):\n%s", diff)
	}
	if got := done.Of("posts", "create"); got != 10 {
		t.Errorf("a post's writes are %v, want those of its status without its creation", got)
	}
}
