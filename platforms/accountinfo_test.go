// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestPercentage(t *testing.T) {
	tests := map[string]struct {
		reason  string
		used    int
		shutOut time.Duration
		left    int
		hold    time.Duration
	}{
		"little used": {"there is room", 28, 0, 72, 0},
		"ninety":      {"the advice is about more than that", 90, 0, 10, 0},
		"nearly":      {"calls are made less often", 91, 0, 9, time.Minute},
		"used up":     {"calling now prolongs the block", 100, 0, 0, 5 * time.Minute},
		"beyond":      {"Meta counts beyond a hundred", 130, 0, 0, 5 * time.Minute},
		"shut out":    {"the platform's own word counts more than percents", 95, 19 * time.Minute, 0, 19 * time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := platforms.RateLimit{Name: "usage", Limit: 100, Remaining: tc.left}
			if tc.hold > 0 {
				want.BlockedUntil, want.ResetsAt = noon.Add(tc.hold), noon.Add(tc.hold)
			}
			if diff := cmp.Diff(want, platforms.Percentage("usage", false, tc.used, tc.shutOut, noon)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestQuotaUsed(t *testing.T) {
	tests := map[string]struct {
		reason      string
		total, used string
		want        []platforms.RateLimit
	}{
		"room":     {"what is left is the difference", "250", "4", []platforms.RateLimit{{Name: platforms.PostsPerDay, Limit: 250, Remaining: 246}}},
		"used up":  {"nothing is sent for a while", "50", "50", []platforms.RateLimit{{Name: platforms.PostsPerDay, Limit: 50, BlockedUntil: noon}}},
		"beyond":   {"other programs may have gone beyond", "50", "51", []platforms.RateLimit{{Name: platforms.PostsPerDay, Limit: 50, BlockedUntil: noon}}},
		"no total": {"without a total nothing can be told", "", "4", nil},
		"no use":   {"nor without what was used", "250", "", nil},
		"nonsense": {"a negative number is none", "-1", "0", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, platforms.QuotaUsed(tc.total, tc.used, noon)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLow(t *testing.T) {
	for _, tc := range []struct {
		reason     string
		most, left int
		want       bool
	}{
		{"a tenth is little", 250, 25, true},
		{"more than a tenth is not", 250, 26, false},
		{"of few, the last ones count", 5, 1, false},
		{"nothing is little", 5, 0, true},
		{"what is told without a total is told because it is little", 0, 0, true},
		{"more was counted than there was", 50, -3, true},
	} {
		if got := platforms.Low(tc.most, tc.left); got != tc.want {
			t.Errorf("%s: %d of %d gives %v", tc.reason, tc.left, tc.most, got)
		}
	}
}
