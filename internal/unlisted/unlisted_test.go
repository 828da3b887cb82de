// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package unlisted

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestCount(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := New(registry)
	for _, code := range []string{"999", "190/463", "HTTP 403", "999", "", "<b>", "a\nb", strings.Repeat("9", 65)} {
		c.Inc("x", Publish, code)
	}
	want := `
# HELP herald_platform_unlisted_errors_total Errors of platforms with a code that is in none of Herald's tables, by platform, by operation (publish, prepare, lookup, identify, inspect or refresh) and by the platform's code; other: it has no usable form, or there are too many.
# TYPE herald_platform_unlisted_errors_total counter
herald_platform_unlisted_errors_total{code="190/463",operation="publish",platform="x"} 1
herald_platform_unlisted_errors_total{code="999",operation="publish",platform="x"} 2
herald_platform_unlisted_errors_total{code="HTTP 403",operation="publish",platform="x"} 1
herald_platform_unlisted_errors_total{code="other",operation="publish",platform="x"} 4
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestCodesAreBounded counts more codes than can have their own series.
func TestCodesAreBounded(t *testing.T) {
	c := New(nil)
	for i := range 10 * maxCodes {
		c.Inc("x", Lookup, fmt.Sprint(i))
	}
	c.Inc("x", Publish, "0")
	c.Inc("threads", Lookup, "new")
	if n := testutil.CollectAndCount(c.errors); n != maxCodes+3 {
		t.Errorf("got %d series, want one for each of %d codes, one for other codes, one for another operation and one for another platform", n, maxCodes)
	}
	if n := testutil.ToFloat64(c.errors.WithLabelValues("x", Lookup, other)); n != 9*maxCodes {
		t.Errorf("%v other codes are counted", n)
	}
	var none *Counter
	none.Inc("x", Publish, "999") // counts nothing
}
