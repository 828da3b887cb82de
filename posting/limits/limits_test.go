// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/limits"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func in(d time.Duration) *v1alpha1.Time { return v1alpha1.NewTimePtr(noon.Add(d)) }

func limit(name string, most, left int32, resets *v1alpha1.Time) v1alpha1.ConnectionLimit {
	return v1alpha1.ConnectionLimit{Name: name, Most: most, Left: left, ResetsAt: resets, ObservedAt: v1alpha1.NewTime(noon)}
}

func TestEnter(t *testing.T) {
	hour := noon.Add(time.Hour)
	tests := map[string]struct {
		reason string
		before v1alpha1.ConnectionStatus
		told   []platforms.Allowance
		want   v1alpha1.ConnectionStatus
		held   bool
	}{
		"nothing told": {"nothing changes", v1alpha1.ConnectionStatus{}, nil, v1alpha1.ConnectionStatus{}, false},
		"room": {
			"what is left is written down, in an order that stays",
			v1alpha1.ConnectionStatus{},
			[]platforms.Allowance{{Name: "usage", Most: 100, Left: 60}, {Name: "appUsage", Most: 100, Left: 99, ResetsAt: hour}},
			v1alpha1.ConnectionStatus{Limits: []v1alpha1.ConnectionLimit{limit("appUsage", 100, 99, in(time.Hour)), limit("usage", 100, 60, nil)}},
			false,
		},
		"account used up": {
			"this account waits",
			v1alpha1.ConnectionStatus{Limits: []v1alpha1.ConnectionLimit{limit("postsPerDay", 50, 3, nil)}},
			[]platforms.Allowance{{Name: "postsPerDay", Most: 50, HoldUntil: hour}},
			v1alpha1.ConnectionStatus{Limits: []v1alpha1.ConnectionLimit{limit("postsPerDay", 50, 0, nil)}, RateLimitedUntil: in(time.Hour)},
			true,
		},
		"app used up": {
			"all accounts wait",
			v1alpha1.ConnectionStatus{},
			[]platforms.Allowance{{Name: "appUsage", Most: 100, HoldUntil: hour, AppWide: true}},
			v1alpha1.ConnectionStatus{Limits: []v1alpha1.ConnectionLimit{limit("appUsage", 100, 0, nil)}, RateLimitedUntil: in(time.Hour), AppRateLimitedUntil: in(time.Hour)},
			true,
		},
		"app nearly used up": {
			"one account slows down, and not all stop",
			v1alpha1.ConnectionStatus{},
			[]platforms.Allowance{{Name: "appUsage", Most: 100, Left: 4, HoldUntil: hour, AppWide: true}},
			v1alpha1.ConnectionStatus{Limits: []v1alpha1.ConnectionLimit{limit("appUsage", 100, 4, nil)}, RateLimitedUntil: in(time.Hour)},
			true,
		},
		"held for longer": {
			"an earlier end takes nothing back",
			v1alpha1.ConnectionStatus{RateLimitedUntil: in(2 * time.Hour)},
			[]platforms.Allowance{{Name: "usage", Most: 100, HoldUntil: hour}},
			v1alpha1.ConnectionStatus{Limits: []v1alpha1.ConnectionLimit{limit("usage", 100, 0, nil)}, RateLimitedUntil: in(2 * time.Hour)},
			false,
		},
		"account held for longer": {
			"the app is held for no longer than it was told",
			v1alpha1.ConnectionStatus{RateLimitedUntil: in(24 * time.Hour)},
			[]platforms.Allowance{{Name: "appUsage", Most: 100, HoldUntil: hour, AppWide: true}},
			v1alpha1.ConnectionStatus{Limits: []v1alpha1.ConnectionLimit{limit("appUsage", 100, 0, nil)}, RateLimitedUntil: in(24 * time.Hour), AppRateLimitedUntil: in(time.Hour)},
			true,
		},
		"a year": {
			"what cannot be is not believed",
			v1alpha1.ConnectionStatus{},
			[]platforms.Allowance{{Name: "usage", Most: 100, HoldUntil: noon.AddDate(1, 0, 0), ResetsAt: noon.AddDate(1, 0, 0)}},
			v1alpha1.ConnectionStatus{Limits: []v1alpha1.ConnectionLimit{limit("usage", 100, 0, nil)}},
			false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			held := limits.Enter(&tc.before, tc.told, noon)
			if held != tc.held || held != (tc.before.RateLimitedMessage != "") {
				t.Errorf("%s: held %v, message %q", tc.reason, held, tc.before.RateLimitedMessage)
			}
			tc.before.RateLimitedMessage = ""
			if diff := cmp.Diff(tc.want, tc.before); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEnterBounds(t *testing.T) {
	var status v1alpha1.ConnectionStatus
	for i := range 20 {
		limits.Enter(&status, []platforms.Allowance{{Name: string(rune('a' + i)), Most: 1 << 40, Left: -1}}, noon)
	}
	if len(status.Limits) != 16 || status.Limits[0].Most <= 0 || status.Limits[0].Left != 0 {
		t.Errorf("the schema would refuse %d limits, or %+v", len(status.Limits), status.Limits[0])
	}
	if !limits.Hold(&status, noon.Add(time.Second), false, strings.Repeat("é", 5000), noon) || len([]rune(status.RateLimitedMessage)) != 1024 {
		t.Errorf("the schema would refuse a message of %d characters", len([]rune(status.RateLimitedMessage)))
	}
}

func TestEnterSurvey(t *testing.T) {
	status := v1alpha1.ConnectionStatus{
		TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"SELF_ONLY"}},
		Limits: []v1alpha1.ConnectionLimit{limit("postsPerDay", 0, 0, nil), limit("usage", 100, 50, nil)},
	}
	limits.EnterSurvey(&status, platforms.Survey{}, noon)
	if status.TikTok == nil || len(status.Limits) != 1 || status.Limits[0].Name != "usage" {
		t.Errorf("a limit that is told only when it is reached is not reached any more, and the rest stays: %+v", status)
	}
	limits.EnterSurvey(&status, platforms.Survey{TikTok: &v1alpha1.TikTokAccount{CommentDisabled: true}}, noon)
	if !status.TikTok.CommentDisabled || status.TikTok.PrivacyLevelOptions != nil {
		t.Errorf("what an account may choose is replaced: %+v", status.TikTok)
	}
}

func TestTimed(t *testing.T) {
	quota := func(at time.Time, alike bool) *platforms.Error {
		return &platforms.Error{Class: platforms.ClassQuota, RetryAt: at, PostOnly: alike}
	}
	limited := func(at time.Time) *platforms.Error {
		return &platforms.Error{Class: platforms.ClassRateLimited, RetryAt: at}
	}
	tests := map[string]struct {
		reason string
		err    *platforms.Error
		want   time.Duration
	}{
		"quota":                    {"what is used up stays so for hours", quota(time.Time{}, false), limits.QuotaPause},
		"quota, of some posts":     {"what its owner can clear is asked for sooner", quota(time.Time{}, true), limits.PostQuotaPause},
		"quota with a time":        {"the platform's word counts", quota(noon.Add(time.Second), false), time.Second},
		"quota, past":              {"a time that has passed is none", quota(noon, false), limits.QuotaPause},
		"quota, absurd":            {"nor is one that cannot be", quota(noon.AddDate(1, 0, 0), false), limits.QuotaPause},
		"rate":                     {"windows are short", limited(time.Time{}), limits.RatePause},
		"rate with a time":         {"the platform's word counts", limited(noon.Add(time.Hour)), time.Hour},
		"trouble":                  {"trouble has its own pauses", platforms.Errorf(platforms.ClassTransient, "x"), 0},
		"trouble, past the window": {"and its own times", &platforms.Error{Class: platforms.ClassTransient, RetryAt: noon.Add(-time.Second)}, -time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := *tc.err
			got, wait := limits.Timed(tc.err, noon), time.Duration(0)
			if !got.RetryAt.IsZero() {
				wait = got.RetryAt.Sub(noon)
			}
			if wait != tc.want || *tc.err != before {
				t.Errorf("%s: waits for %v, want %v; what it was given is %+v", tc.reason, wait, tc.want, tc.err)
			}
		})
	}
	if limits.Timed(nil, noon) != nil {
		t.Error("no error needs no time")
	}
}

func TestDropPast(t *testing.T) {
	status := v1alpha1.ConnectionStatus{
		RateLimitedUntil: in(time.Hour), AppRateLimitedUntil: in(0), RateLimitedMessage: "why",
		Limits: []v1alpha1.ConnectionLimit{limit("past", 100, 0, in(0)), limit("present", 100, 0, in(time.Second))},
	}
	limits.DropPast(&status, noon)
	want := v1alpha1.ConnectionStatus{RateLimitedUntil: in(time.Hour), RateLimitedMessage: "why", Limits: []v1alpha1.ConnectionLimit{limit("present", 100, 0, in(time.Second))}}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
	limits.DropPast(&status, noon.Add(time.Hour))
	if diff := cmp.Diff(v1alpha1.ConnectionStatus{}, status); diff != "" {
		t.Error(diff)
	}
}

func TestHeld(t *testing.T) {
	status := v1alpha1.ConnectionStatus{RateLimitedUntil: in(time.Hour), AppRateLimitedUntil: in(time.Minute)}
	for _, tc := range []struct {
		reason       string
		at           time.Duration
		account, app bool
	}{
		{"both hold", 0, true, true},
		{"at its end a hold is over", time.Minute, true, false},
		{"and so is the other", time.Hour, false, false},
	} {
		now := noon.Add(tc.at)
		if got := !limits.Held(&status, now).IsZero(); got != tc.account {
			t.Errorf("%s: the account is held: %v", tc.reason, got)
		}
		if got := !limits.AppHeld(&status, now).IsZero(); got != tc.app {
			t.Errorf("%s: the app is held: %v", tc.reason, got)
		}
	}
}
