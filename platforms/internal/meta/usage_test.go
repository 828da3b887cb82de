// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

func TestUsedOf(t *testing.T) {
	tests := map[string]struct {
		reason, app, business string
		want                  Usage
	}{
		"nothing told": {"some answers have no headers", "", "", Usage{App: -1, Account: -1}},
		"app":          {"the most used of three budgets counts", `{"call_count":28,"total_time":95,"total_cputime":25}`, "", Usage{App: 95, Account: -1}},
		"account": {
			"a business may be told of several use cases", "",
			`{"17":[{"type":"pages","call_count":10,"total_cputime":20,"total_time":20,"estimated_time_to_regain_access":0},{"type":"other","call_count":91}]}`,
			Usage{App: -1, Account: 91},
		},
		"shut out": {
			"minutes are told", "", `{"17":[{"type":"pages","call_count":100,"total_cputime":20,"total_time":20,"estimated_time_to_regain_access":19}]}`,
			Usage{App: -1, Account: 100, RetryAfter: 19 * time.Minute},
		},
		"not theirs": {"what is no JSON tells nothing", "95%", "many", Usage{App: -1, Account: -1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set(appUsageHeader, tc.app)
			h.Set(usageHeader, tc.business)
			if got := ParseUsage(h); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

// noon is the time of these tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestUsageLimit(t *testing.T) {
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
			if diff := cmp.Diff(want, usageLimit("usage", false, tc.used, tc.shutOut, noon)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestQuotaLimit(t *testing.T) {
	tests := map[string]struct {
		reason, total, used string
		want                []platforms.RateLimit
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
			if diff := cmp.Diff(tc.want, quotaLimit(tc.total, tc.used, noon)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
