// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/test/must"
)

func TestRecordingRoundTrip(t *testing.T) {
	r := &Recording{
		From: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), Step: 10 * time.Second,
		Series: map[string][]float64{`a{b="c d"}`: {0, 0, 1, 1.5}, `e{}`: {0, 7, 1795371014.903, 0}},
		Absent: map[string]map[int]bool{`a{b="c d"}`: {0: true, 1: true, 2: false, 3: false}, `e{}`: {0: true, 1: false, 2: false, 3: false}},
	}
	var text bytes.Buffer
	must.Succeed(t, r.Write(&text))
	_, series, _ := strings.Cut(text.String(), "\n")
	if want := "a{b=\"c d\"} _*2 1 1.5\ne{} _ 7 1.795371014903e+09 0\n"; series != want {
		t.Errorf("got:\n%s\nwant:\n%s", series, want)
	}
	got, err := Read(&text)
	must.Succeed(t, err)
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
	if want := r.From.Add(30 * time.Second); got.Steps() != 4 || !got.To().Equal(want) {
		t.Errorf("the recording has %d steps and ends at %s", got.Steps(), got.To())
	}
	var metrics bytes.Buffer
	must.Succeed(t, got.OpenMetrics(&metrics))
	want := `a{b="c d"} 1 1796115620
a{b="c d"} 1.5 1796115630
e{} 7 1796115610
e{} 1.795371014903e+09 1796115620
e{} 0 1796115630
# EOF
`
	if diff := cmp.Diff(want, metrics.String()); diff != "" {
		t.Errorf("absent series have no sample (-want +got):\n%s", diff)
	}
}

func TestInvalidRecording(t *testing.T) {
	const head = "# What Prometheus scraped of a run: from 2026-12-01T09:00:00Z on, every 10s.\n"
	for _, tt := range []struct{ reason, text string }{
		{"an empty recording", ""},
		{"the start is missing", "# What Prometheus scraped, every 10s.\n"},
		{"the interval is invalid", "# What Prometheus scraped of a run: from 2026-12-01T09:00:00Z on, every day.\n"},
		{"the value is not a number", head + "a{} many\n"},
		{"the count is not a number", head + "a{} 1*many\n"},
	} {
		if r, err := Read(strings.NewReader(tt.text)); err == nil {
			t.Errorf("%s: the recording was parsed as %+v", tt.reason, r)
		}
	}
	if _, err := Read(strings.NewReader(head)); err != nil {
		t.Errorf("a recording without a series is rejected: %v", err)
	}
}
