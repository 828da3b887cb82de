// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/apiserver/bridge"
)

func TestToken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		made   time.Time
		want   string
	}{
		"OfThisRequest": {"the request came before it was made, and it is not to come", now.Add(5 * time.Millisecond), "made <time datetime=\"2026-12-01T08:59:59Z\""},
		"AtOnce":        {"nor if both fall into one tick of the clock", now, "just now"},
		"Older":         {"any other has its age", now.Add(-5 * time.Minute), "5 minutes ago"},
		"NotKnown":      {"without a time there is no age", time.Time{}, "<code>hrld_1…</code>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &visit{now: now, zone: time.UTC}
			var page strings.Builder
			if err := token(v, bridge.KeyToken{Shown: "hrld_1", CreatedAt: tc.made}).Render(&page); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page.String(), tc.want) || strings.Contains(page.String(), "in a moment") {
				t.Errorf("%s: want %q: %s", tc.reason, tc.want, page.String())
			}
		})
	}
}
