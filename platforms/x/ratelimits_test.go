// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

var tea = time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)

// told adds the headers of one limit.
func told(h http.Header, prefix string, most, left int, reset time.Time) http.Header {
	h.Set(prefix+"-limit", strconv.Itoa(most))
	h.Set(prefix+"-remaining", strconv.Itoa(left))
	h.Set(prefix+"-reset", strconv.FormatInt(reset.Unix(), 10))
	return h
}

func TestAllowances(t *testing.T) {
	quarter, day := tea.Add(15*time.Minute), tea.Add(24*time.Hour)
	tests := map[string]struct {
		reason string
		header http.Header
		want   []platforms.RateLimit
	}{
		"none": {"some answers tell nothing", http.Header{}, nil},
		"room": {
			"what is left is told with every answer", told(http.Header{}, window, 100, 99, quarter),
			[]platforms.RateLimit{{Name: platforms.PostsPerWindow, Limit: 100, Remaining: 99, ResetsAt: quarter}},
		},
		"last post of the day": {
			"the next call would be refused until the day is over", told(told(http.Header{}, window, 100, 50, quarter), userDaily, 300, 0, day),
			[]platforms.RateLimit{
				{Name: platforms.PostsPerWindow, Limit: 100, Remaining: 50, ResetsAt: quarter},
				{Name: platforms.PostsPerDay, Limit: 300, Remaining: 0, ResetsAt: day, BlockedUntil: day},
			},
		},
		"last post of the app": {
			"all accounts share it", told(http.Header{}, appDaily, 10000, 0, day),
			[]platforms.RateLimit{{Name: platforms.AppPostsPerDay, Limit: 10000, Remaining: 0, ResetsAt: day, BlockedUntil: day, AppWide: true}},
		},
		"reset long ago": {
			"a time that has passed holds nobody", told(http.Header{}, window, 100, 0, tea.Add(-time.Hour)),
			[]platforms.RateLimit{{Name: platforms.PostsPerWindow, Limit: 100}},
		},
		"nonsense": {"a limit of nothing is none", told(http.Header{}, window, 0, 0, quarter), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rateLimits(tc.header, tea)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAppWide(t *testing.T) {
	tests := map[string]struct {
		reason string
		status int
		body   string
		header http.Header
		want   bool
		class  platforms.Class
	}{
		"account's window": {"others may go on", 429, `{"title":"Too Many Requests"}`, told(http.Header{}, window, 100, 0, tea.Add(time.Minute)), false, platforms.ClassRateLimited},
		"account's day":    {"others may go on", 429, `{"title":"Too Many Requests"}`, told(http.Header{}, userDaily, 300, 0, tea.Add(time.Hour)), false, platforms.ClassQuota},
		"app's day":        {"nobody may", 429, `{"title":"Too Many Requests"}`, told(http.Header{}, appDaily, 10000, 0, tea.Add(time.Hour)), true, platforms.ClassQuota},
		"credits":          {"the app has to pay", 402, `{"title":"CreditsDepleted","type":"https://api.x.com/2/problems/credits"}`, http.Header{}, true, platforms.ClassQuota},
		"usage cap":        {"the app's cap", 429, `{"title":"UsageCapExceeded","type":"https://api.x.com/2/problems/usage-capped"}`, http.Header{}, true, platforms.ClassQuota},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := New(Config{Clock: clocktesting.NewFakeClock(tea)}, nil)
			failure, refused := p.classify(&transport.Response{Status: tc.status, Header: tc.header, Body: []byte(tc.body)})
			if failure.AppWide != tc.want || failure.Class != tc.class || !refused {
				t.Errorf("%s: got %+v", tc.reason, failure)
			}
		})
	}
}
