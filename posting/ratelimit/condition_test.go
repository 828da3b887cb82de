// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/ratelimit"
)

func condition(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func TestDescribe(t *testing.T) {
	hour := in(time.Hour)
	known := func(reason string) []metav1.Condition {
		return []metav1.Condition{condition(v1alpha1.ConditionRateLimited, reason, "nothing is sent before 2026-11-20T12:30:00.000Z: 25 a day")}
	}
	for name, tc := range map[string]struct {
		why    string
		status v1alpha1.ConnectionStatus
		reason string
		want   string
	}{
		"no limit":           {"an unlimited account needs no message", v1alpha1.ConnectionStatus{}, "", ""},
		"a limit":            {"only the account waits", v1alpha1.ConnectionStatus{RateLimitedUntil: hour}, "", v1alpha1.ReasonAccountLimited},
		"an expired limit":   {"posts are published again", v1alpha1.ConnectionStatus{RateLimitedUntil: in(-time.Second), Conditions: known(v1alpha1.ReasonAccountLimited)}, "", ""},
		"a limit of the app": {"every account of the app waits", v1alpha1.ConnectionStatus{RateLimitedUntil: hour, AppRateLimitedUntil: hour}, "", v1alpha1.ReasonAppLimited},
		"the app is free before the account": {
			"the account's own limit lasts longer", v1alpha1.ConnectionStatus{RateLimitedUntil: hour, AppRateLimitedUntil: in(time.Minute)}, "", v1alpha1.ReasonAccountLimited,
		},
		"no posts remain":                    {"the account posted as often as it may", v1alpha1.ConnectionStatus{RateLimitedUntil: hour, RateLimits: []v1alpha1.RateLimit{limit("postsPerDay", 250, 0, nil)}}, "", v1alpha1.ReasonQuotaUsedUp},
		"no posts remained of another limit": {"the other limit has been reset", v1alpha1.ConnectionStatus{RateLimitedUntil: hour, RateLimits: []v1alpha1.RateLimit{limit("postsPerDay", 250, 0, in(-time.Second))}}, "", v1alpha1.ReasonAccountLimited},
		"a response reported a quota":        {"the caller knows the reason", v1alpha1.ConnectionStatus{RateLimitedUntil: hour}, v1alpha1.ReasonQuotaUsedUp, v1alpha1.ReasonQuotaUsedUp},
		"that quota lasts":                   {"without a number, the limit is the same", v1alpha1.ConnectionStatus{RateLimitedUntil: hour, RateLimitedMessage: "25 a day", Conditions: known(v1alpha1.ReasonQuotaUsedUp)}, "", v1alpha1.ReasonQuotaUsedUp},
		"another limit lasts longer":         {"the quota is not the longest limit", v1alpha1.ConnectionStatus{RateLimitedUntil: hour, RateLimitedMessage: "too fast", Conditions: known(v1alpha1.ReasonQuotaUsedUp)}, "", v1alpha1.ReasonAccountLimited},
		"a locked account": {
			"a user has to unlock it", v1alpha1.ConnectionStatus{
				RateLimitedUntil: hour, RateLimitedMessage: "locked",
				Conditions: []metav1.Condition{condition(v1alpha1.ConditionPublishingRefused, v1alpha1.ReasonAccountRestricted, "locked")},
			}, "", v1alpha1.ReasonAccountRestricted,
		},
	} {
		conn := &v1alpha1.Connection{Status: tc.status}
		ratelimit.Describe(conn, tc.reason, noon)
		got := ""
		if c := meta.FindStatusCondition(conn.Status.Conditions, v1alpha1.ConditionRateLimited); c != nil {
			got = c.Reason
			if want := "nothing is sent before 2026-11-20T13:00:00.000Z: " + tc.status.RateLimitedMessage; c.Message != want || c.Status != metav1.ConditionTrue {
				t.Errorf("%s: got %s %q, want %q", name, c.Status, c.Message, want)
			}
		}
		if got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.why, got, tc.want)
		}
	}
}

func TestChanged(t *testing.T) {
	limited := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{condition("Ready", "Connected", ""), condition(v1alpha1.ConditionRateLimited, reason, message)}
	}
	free := []metav1.Condition{condition("Ready", "Connected", "")}
	for name, tc := range map[string]struct {
		why           string
		before, after []metav1.Condition
		want          ratelimit.Change
		changed       bool
	}{
		"none":          {"the status is unchanged", free, free, ratelimit.Change{}, false},
		"begins":        {"its posts wait from now on", free, limited("AppLimited", "until nine"), ratelimit.Change{Begun: true, Reason: "AppLimited", Message: "until nine"}, true},
		"lasts":         {"an extension by an hour is not an event", limited("AppLimited", "until nine"), limited("AppLimited", "until ten"), ratelimit.Change{}, false},
		"is another":    {"the new reason has another remedy", limited("AppLimited", "until nine"), limited("QuotaUsedUp", "until ten"), ratelimit.Change{Begun: true, Reason: "QuotaUsedUp", Message: "until ten"}, true},
		"ends":          {"its posts are published", limited("AppLimited", "until nine"), free, ratelimit.Change{Reason: "AppLimited", Message: "the account can post again: its limit expired or was lifted"}, true},
		"never written": {"the connection had no condition before", nil, free, ratelimit.Change{}, false},
	} {
		got, changed := ratelimit.Changed(tc.before, tc.after)
		if diff := cmp.Diff(tc.want, got); diff != "" || changed != tc.changed {
			t.Errorf("%s: %s: changed %v\n%s", name, tc.why, changed, diff)
		}
	}
}
