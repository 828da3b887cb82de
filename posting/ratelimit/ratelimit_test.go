// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func in(d time.Duration) *v1alpha1.Time { return v1alpha1.NewTimePtr(noon.Add(d)) }

func limit(name string, most, left int32, resets *v1alpha1.Time) v1alpha1.RateLimit {
	return v1alpha1.RateLimit{Name: name, Limit: most, Remaining: left, ResetsAt: resets, ObservedAt: v1alpha1.NewTime(noon)}
}

func TestApply(t *testing.T) {
	hour := noon.Add(time.Hour)
	for name, tc := range map[string]struct {
		reason string
		before v1alpha1.ConnectionStatus
		told   []platforms.RateLimit
		want   v1alpha1.ConnectionStatus
		held   bool
	}{
		"no limits reported": {"the status is unchanged", v1alpha1.ConnectionStatus{}, nil, v1alpha1.ConnectionStatus{}, false},
		"room": {
			"the remaining quota is recorded, in a stable order",
			v1alpha1.ConnectionStatus{},
			[]platforms.RateLimit{{Name: "usage", Limit: 100, Remaining: 60}, {Name: "appUsage", Limit: 100, Remaining: 99, ResetsAt: hour}},
			v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{limit("appUsage", 100, 99, in(time.Hour)), limit("usage", 100, 60, nil)}},
			false,
		},
		"account used up": {
			"the rate limit of this account is used up",
			v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{limit("postsPerDay", 50, 3, nil)}},
			[]platforms.RateLimit{{Name: "postsPerDay", Limit: 50, BlockedUntil: hour}},
			v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{limit("postsPerDay", 50, 0, nil)}, RateLimitedUntil: in(time.Hour)},
			true,
		},
		"app used up": {
			"all accounts wait",
			v1alpha1.ConnectionStatus{},
			[]platforms.RateLimit{{Name: "appUsage", Limit: 100, BlockedUntil: hour, AppWide: true}},
			v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{limit("appUsage", 100, 0, nil)}, RateLimitedUntil: in(time.Hour), AppRateLimitedUntil: in(time.Hour)},
			true,
		},
		"app nearly used up": {
			"one account slows down, and not all stop",
			v1alpha1.ConnectionStatus{},
			[]platforms.RateLimit{{Name: "appUsage", Limit: 100, Remaining: 4, BlockedUntil: hour, AppWide: true}},
			v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{limit("appUsage", 100, 4, nil)}, RateLimitedUntil: in(time.Hour)},
			true,
		},
		"limited for longer": {
			"an earlier end does not shorten a limit",
			v1alpha1.ConnectionStatus{RateLimitedUntil: in(time.Hour)},
			[]platforms.RateLimit{{Name: "usage", Limit: 100, BlockedUntil: noon.Add(time.Minute)}},
			v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{limit("usage", 100, 0, nil)}, RateLimitedUntil: in(time.Hour)},
			false,
		},
		"account limited for longer": {
			"the app's limit ends at its own time",
			v1alpha1.ConnectionStatus{RateLimitedUntil: in(time.Hour)},
			[]platforms.RateLimit{{Name: "appUsage", Limit: 100, BlockedUntil: noon.Add(time.Minute), AppWide: true}},
			v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{limit("appUsage", 100, 0, nil)}, RateLimitedUntil: in(time.Hour), AppRateLimitedUntil: in(time.Minute)},
			true,
		},
		"a day": {
			"a limit is not trusted for longer than an hour: then one call probes",
			v1alpha1.ConnectionStatus{},
			[]platforms.RateLimit{{Name: "appPostsPerDay", Limit: 100, BlockedUntil: noon.Add(24 * time.Hour), ResetsAt: noon.Add(24 * time.Hour), AppWide: true}},
			v1alpha1.ConnectionStatus{
				RateLimits:       []v1alpha1.RateLimit{limit("appPostsPerDay", 100, 0, in(24*time.Hour))},
				RateLimitedUntil: in(time.Hour), AppRateLimitedUntil: in(time.Hour),
			},
			true,
		},
		"a year": {
			"impossible times are ignored",
			v1alpha1.ConnectionStatus{},
			[]platforms.RateLimit{{Name: "usage", Limit: 100, BlockedUntil: noon.AddDate(1, 0, 0), ResetsAt: noon.AddDate(1, 0, 0)}},
			v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{limit("usage", 100, 0, nil)}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			held := ratelimit.Apply(&tc.before, tc.told, noon)
			if held != tc.held || held != (tc.before.RateLimitedMessage != "") {
				t.Errorf("%s: limited %v, message %q", tc.reason, held, tc.before.RateLimitedMessage)
			}
			tc.before.RateLimitedMessage = ""
			if diff := cmp.Diff(tc.want, tc.before); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestApplyBounds(t *testing.T) {
	var status v1alpha1.ConnectionStatus
	for i := range 20 {
		ratelimit.Apply(&status, []platforms.RateLimit{{Name: string(rune('a' + i)), Limit: 1 << 40, Remaining: -1}}, noon)
	}
	if len(status.RateLimits) != 16 || status.RateLimits[0].Limit <= 0 || status.RateLimits[0].Remaining != 0 {
		t.Errorf("the schema would refuse %d limits, or %+v", len(status.RateLimits), status.RateLimits[0])
	}
	if !ratelimit.Block(&status, noon.Add(time.Second), false, strings.Repeat("é", 5000), noon) || len([]rune(status.RateLimitedMessage)) != 1024 {
		t.Errorf("the schema would refuse a message of %d characters", len([]rune(status.RateLimitedMessage)))
	}
}

func TestApplyAccountInfo(t *testing.T) {
	status := v1alpha1.ConnectionStatus{
		TikTok:     &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"SELF_ONLY"}},
		RateLimits: []v1alpha1.RateLimit{limit("postsPerDay", 0, 0, nil), limit("usage", 100, 50, nil)},
	}
	ratelimit.ApplyAccountInfo(&status, platforms.AccountInfo{}, noon)
	if status.TikTok == nil || len(status.RateLimits) != 1 || status.RateLimits[0].Name != "usage" {
		t.Errorf("a limit that is only reported when reached must be cleared, and others remain: %+v", status)
	}
	ratelimit.ApplyAccountInfo(&status, platforms.AccountInfo{TikTok: &v1alpha1.TikTokAccount{CommentDisabled: true}}, noon)
	if !status.TikTok.CommentDisabled || status.TikTok.PrivacyLevelOptions != nil {
		t.Errorf("the account's options were not replaced: %+v", status.TikTok)
	}
}

func TestSanitize(t *testing.T) {
	quota := func(at time.Time, alike bool) *platforms.Error {
		return &platforms.Error{Class: platforms.ClassQuota, RetryAt: at, PostOnly: alike}
	}
	limited := func(at time.Time) *platforms.Error {
		return &platforms.Error{Class: platforms.ClassRateLimited, RetryAt: at}
	}
	for name, tc := range map[string]struct {
		reason string
		err    *platforms.Error
		want   time.Duration
	}{
		"quota":                    {"a used quota lasts for hours", quota(time.Time{}, false), ratelimit.QuotaPause},
		"quota, of some posts":     {"a quota that its owner can clear is probed sooner", quota(time.Time{}, true), ratelimit.PostQuotaPause},
		"quota with a time":        {"the platform's time is used", quota(noon.Add(time.Second), false), time.Second},
		"quota, past":              {"a time in the past is ignored", quota(noon, false), ratelimit.QuotaPause},
		"quota, absurd":            {"an impossible time is ignored", quota(noon.AddDate(1, 0, 0), false), ratelimit.QuotaPause},
		"rate":                     {"windows are short", limited(time.Time{}), ratelimit.RatePause},
		"rate with a time":         {"the platform's time is used", limited(noon.Add(time.Hour)), time.Hour},
		"rate, a day":              {"for an hour", limited(noon.Add(24 * time.Hour)), time.Hour},
		"rate, a month":            {"the limit is capped", limited(noon.Add(31 * 24 * time.Hour)), time.Hour},
		"trouble, a year":          {"every class is capped", &platforms.Error{Class: platforms.ClassTransient, RetryAt: noon.AddDate(1, 0, 0)}, time.Hour},
		"trouble":                  {"outages have their own backoff", platforms.Errorf(platforms.ClassTransient, "x"), 0},
		"trouble, past the window": {"outages have their own retry time", &platforms.Error{Class: platforms.ClassTransient, RetryAt: noon.Add(-time.Second)}, -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			before := *tc.err
			got, wait := ratelimit.Sanitize(tc.err, platforms.Token{}, noon), time.Duration(0)
			if !got.RetryAt.IsZero() {
				wait = got.RetryAt.Sub(noon)
			}
			if wait != tc.want || *tc.err != before {
				t.Errorf("%s: waits for %v, want %v; the argument is %+v", tc.reason, wait, tc.want, tc.err)
			}
		})
	}
	if ratelimit.Sanitize(nil, platforms.Token{}, noon) != nil {
		t.Error("no error needs no time")
	}
}

// TestSanitizeOfApp checks that another app's limits are not applied to Herald's app, because users may supply tokens
// of any app.
func TestSanitizeOfApp(t *testing.T) {
	told := platforms.Result{
		Err:        &platforms.Error{Class: platforms.ClassQuota, AppWide: true, RetryAt: noon.Add(time.Minute)},
		RateLimits: []platforms.RateLimit{{Name: "usage"}, {Name: "appUsage", AppWide: true}},
	}
	for _, tc := range []struct {
		reason string
		token  platforms.Token
		want   bool
	}{
		{"an unknown app's limit applies to the account", platforms.Token{Access: "a"}, false},
		{"Herald's limits all of its accounts", platforms.Token{Access: "a", App: "herald"}, true},
	} {
		got := ratelimit.SanitizeResult(told, tc.token, noon)
		if got.Err.AppWide != tc.want || got.RateLimits[1].AppWide != tc.want || !got.Err.RetryAt.Equal(told.Err.RetryAt) {
			t.Errorf("%s: %+v, %+v", tc.reason, got.Err, got.RateLimits)
		}
		if !told.Err.AppWide || !told.RateLimits[1].AppWide {
			t.Fatal("the argument was changed")
		}
	}
}

func TestDropPast(t *testing.T) {
	status := v1alpha1.ConnectionStatus{
		RateLimitedUntil: in(time.Hour), AppRateLimitedUntil: in(0), RateLimitedMessage: "why",
		RateLimits: []v1alpha1.RateLimit{limit("past", 100, 0, in(0)), limit("present", 100, 0, in(time.Second))},
	}
	ratelimit.DropExpired(&status, noon)
	want := v1alpha1.ConnectionStatus{RateLimitedUntil: in(time.Hour), RateLimitedMessage: "why", RateLimits: []v1alpha1.RateLimit{limit("present", 100, 0, in(time.Second))}}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
	ratelimit.DropExpired(&status, noon.Add(time.Hour))
	if diff := cmp.Diff(v1alpha1.ConnectionStatus{}, status); diff != "" {
		t.Error(diff)
	}
}

func TestExhausted(t *testing.T) {
	for _, tt := range []struct {
		reason string
		limits []v1alpha1.RateLimit
		want   bool
	}{
		{"the quota is unknown", nil, false},
		{"some quota remains", []v1alpha1.RateLimit{limit("a", 100, 1, nil)}, false},
		{"no quota remains, until an unknown time", []v1alpha1.RateLimit{limit("a", 100, 1, nil), limit("b", 100, 0, nil)}, true},
		{"no quota remains for an hour", []v1alpha1.RateLimit{limit("a", 100, 0, in(time.Hour))}, false},
		{"some quota remains for an hour", []v1alpha1.RateLimit{limit("a", 100, 1, in(time.Hour))}, false},
	} {
		if got := ratelimit.Exhausted(&v1alpha1.ConnectionStatus{RateLimits: tt.limits}); got != tt.want {
			t.Errorf("%s: exhausted %t, want %t", tt.reason, got, tt.want)
		}
	}
}

func TestLow(t *testing.T) {
	for _, tt := range []struct {
		reason string
		left   int32
		since  int
		want   bool
	}{
		{"more than a tenth remains", 11, 0, false},
		{"a tenth remains", 10, 0, true},
		{"a tenth remains after a post since", 11, 1, true},
	} {
		l := limit("a", 100, tt.left, nil)
		if got := ratelimit.Low(&l, tt.since); got != tt.want {
			t.Errorf("%s: low %t, want %t", tt.reason, got, tt.want)
		}
	}
}

func TestBlocked(t *testing.T) {
	status := v1alpha1.ConnectionStatus{RateLimitedUntil: in(time.Hour), AppRateLimitedUntil: in(time.Minute)}
	for _, tc := range []struct {
		reason       string
		at           time.Duration
		account, app bool
	}{
		{"both limits apply", 0, true, true},
		{"a limit ends at its end time", time.Minute, true, false},
		{"an app limit ends at its end time", time.Hour, false, false},
		{"a limit for months from an older version is probed", -2 * time.Hour, false, false},
	} {
		now := noon.Add(tc.at)
		if got := !ratelimit.BlockedUntil(&status, now).IsZero(); got != tc.account {
			t.Errorf("%s: the account is limited: %v", tc.reason, got)
		}
		if got := !ratelimit.AppBlockedUntil(&status, now).IsZero(); got != tc.app {
			t.Errorf("%s: the app is limited: %v", tc.reason, got)
		}
	}
}
