// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"testing"

	"github.com/herald-social/herald/apiserver/limits"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason              string
		bytes, parts, whole int
		want                int
	}{
		"nothing":        {"a page of posts", 0, 0, 0, 0},
		"a usual post":   {"of six targets with a picture each costs one request", 2_000, 6 + 1, 0, 0},
		"many targets":   {"ten cost one more", 0, 25, 0, 2},
		"a thread":       {"of 2,000 files costs what it reads", 40_000, 2_001, 0, 200},
		"a large body":   {"64 KiB cost one more", 200_000, 1, 0, 3},
		"fresh pictures": {"are looked at in the store, one by one", 0, 6, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, meter := limits.WithMeter(t.Context())
			limits.MeterFrom(ctx).Bytes(tc.bytes)
			limits.MeterFrom(ctx).Parts(tc.parts)
			limits.MeterFrom(ctx).Whole(tc.whole)
			if got := meter.Requests(); got != tc.want {
				t.Errorf("%s: costs %d more, want %d", tc.reason, got, tc.want)
			}
		})
	}
	none := limits.MeterFrom(t.Context())
	none.Bytes(1)
	none.Parts(1)
	none.Whole(1)
	if got := none.Requests(); got != 0 {
		t.Errorf("where nothing is added up, a request costs %d more", got)
	}
}
