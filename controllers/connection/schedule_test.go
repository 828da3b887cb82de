// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
)

const quarter = 15 * time.Minute

// probed sets how long ago the last examination was.
func probed(c *v1alpha1.Connection, ago time.Duration) *v1alpha1.Connection {
	c.Status.LastProbedAt = v1alpha1.NewTimePtr(noon.Add(-ago))
	return c
}

func ending(c *v1alpha1.Connection, in time.Duration) *v1alpha1.Connection {
	c.Status.TokenExpiresAt = v1alpha1.NewTimePtr(noon.Add(in))
	return c
}

func withProbe(c *v1alpha1.Connection, probe, handled string) *v1alpha1.Connection {
	c.Annotations = map[string]string{v1alpha1.ProbeAnnotation: probe}
	c.Status.LastHandledProbe = handled
	return c
}

// rateLimited blocks a connection because a limit is exhausted.
func rateLimited(c *v1alpha1.Connection, left time.Duration) *v1alpha1.Connection {
	c.Status.RateLimitedUntil = v1alpha1.NewTimePtr(noon.Add(left))
	c.Status.RateLimits = []v1alpha1.RateLimit{{Name: "postsPerDay", Limit: 50, ObservedAt: v1alpha1.NewTime(noon)}}
	return c
}

func TestDue(t *testing.T) {
	recently := func(reason string) *v1alpha1.Connection { return probed(conn(reason), time.Minute) }
	for name, tc := range map[string]struct {
		reason string
		conn   *v1alpha1.Connection
		want   bool
	}{
		"new":                         {"the account was never checked", conn(""), true},
		"spec changed":                {"its credentials may have changed", changed(recently("Connected")), true},
		"fine":                        {"the account was checked a minute ago", recently("Connected"), false},
		"an hour later":               {"every hour, more or less", probed(conn("Connected"), 66*time.Minute+time.Second), true},
		"not yet an hour":             {"every hour, more or less", probed(conn("Connected"), 54*time.Minute-time.Second), false},
		"asked for":                   {"a client waits for the response", withProbe(recently("Connected"), "p2", "p1"), true},
		"answered":                    {"the request was answered", withProbe(recently("Connected"), "p1", "p1"), false},
		"long request answered":       {"long requests are truncated in the status", withProbe(recently("Connected"), strings.Repeat("p", 300), strings.Repeat("p", 256)), false},
		"token ends soon":             {"a token is renewed before it expires", ending(recently("Connected"), quarter), true},
		"token ends later":            {"its renewal is not due", ending(recently("Connected"), 20*time.Minute), false},
		"outage, just now":            {"retries have a backoff", probed(conn("PlatformUnavailable"), 5*time.Second), false},
		"outage, after a while":       {"the backoff has ended", probed(conn("PlatformUnavailable"), 11*time.Minute), true},
		"disabled":                    {"a disabled account is not probed", probed(conn("Disabled"), 48*time.Hour), false},
		"bad, asked immediately":      {"each post to a broken account requests a probe", withProbe(probed(conn("Revoked"), time.Second), "p2", "p1"), false},
		"bad, asked soon":             {"another probe is due after two seconds", withProbe(probed(conn("Revoked"), 2*time.Second), "p2", "p1"), true},
		"outage, asked immediately":   {"requests do not shorten the backoff", withProbe(probed(conn("PlatformUnavailable"), time.Second), "p2", "p1"), false},
		"good, asked immediately":     {"a good result may be out of date", withProbe(probed(conn("Connected"), time.Second), "p2", "p1"), true},
		"bad, in the future":          {"another process's clock is ahead", withProbe(probed(conn("Revoked"), -time.Hour), "p2", "p1"), true},
		"disabled, but asked":         {"a request is always marked as handled", withProbe(conn("Disabled"), "p", ""), true},
		"Secret missing":              {"the Secret may exist by now", recently("CredentialsNotFound"), true},
		"Secret wrong":                {"the Secret may have been corrected", recently("CredentialsInvalid"), true},
		"revoked, a minute ago":       {"the platform's response would be the same", recently("Revoked"), false},
		"revoked, hours ago":          {"a suspension may have been lifted", probed(conn("Revoked"), 2*time.Hour), true},
		"platform not supported":      {"only an upgrade can change that, and then the restart checks it", recently("PlatformNotSupported"), false},
		"limited, limit about to end": {"the remaining quota is queried shortly before the limit ends", rateLimited(recently("Connected"), 9*time.Second), true},
		"limited for longer":          {"the limit does not end soon", rateLimited(recently("Connected"), 11*time.Second), false},
		"limited, probed since":       {"the probe has been made", rateLimited(probed(conn("Connected"), time.Second), 8*time.Second), false},
		"revoked, but spec change":    {"a reconnect is checked immediately", changed(recently("Revoked")), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := due(tc.conn, quarter, noon); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestNext(t *testing.T) {
	token := func(ends time.Duration, refresh string) outcome {
		return outcome{read: &credentials.Credentials{Token: credentials.Token{Access: "a", Refresh: refresh, ExpiresAt: noon.Add(ends)}}}
	}
	short := token(time.Minute, "r")
	short.read.RenewedAt = noon
	shortest := token(time.Second, "r")
	shortest.read.RenewedAt = noon
	since := func(c *v1alpha1.Connection, ago time.Duration) *v1alpha1.Connection {
		for i := range c.Status.Conditions {
			c.Status.Conditions[i].LastTransitionTime.Time = noon.Add(-ago)
		}
		return c
	}
	for name, tc := range map[string]struct {
		reason    string
		conn      *v1alpha1.Connection
		found     outcome
		low, high time.Duration
	}{
		"no end":               {"an account is checked hourly, with jitter", conn("Connected"), outcome{}, 54 * time.Minute, 66 * time.Minute},
		"two hours":            {"the hourly check comes before the renewal", conn("Connected"), token(2*time.Hour, "r"), 54 * time.Minute, 66 * time.Minute},
		"half an hour":         {"the renewal comes before the hourly check", conn("Connected"), token(30*time.Minute, "r"), 11*time.Minute + 15*time.Second, quarter},
		"short life":           {"a token that lives for a minute is renewed after three quarters of it", conn("Connected"), short, 45 * time.Second, 45 * time.Second},
		"shortest life":        {"renewals have a minimum interval", conn("Connected"), shortest, minRenewPause, minRenewPause},
		"renewal overdue":      {"a failed renewal is retried at shrinking intervals", conn("Connected"), token(8*time.Minute, "r"), 2 * time.Minute, 2 * time.Minute},
		"renewal nearly late":  {"retries have a minimum interval", conn("Connected"), token(2*time.Second, "r"), renewRetryPause, renewRetryPause},
		"cannot be renewed":    {"the account is checked when its token expires", conn("Connected"), token(10*time.Minute, ""), 10 * time.Minute, 10 * time.Minute},
		"should have ended":    {"the platform may still accept the token", conn("Connected"), token(-time.Minute, ""), 54 * time.Minute, 66 * time.Minute},
		"no posts left":        {"the remaining quota is queried before the limit ends", rateLimited(conn("Connected"), 30*time.Minute), outcome{}, 29*time.Minute + 50*time.Second, 29*time.Minute + 50*time.Second},
		"an outage starts":     {"the first retry follows soon", since(conn("PlatformUnavailable"), 0), outcome{}, 9 * time.Second, 11 * time.Second},
		"outage of a minute":   {"pauses double", since(conn("PlatformUnavailable"), time.Minute), outcome{}, 54 * time.Second, 66 * time.Second},
		"outage of a day":      {"the backoff is at most ten minutes", since(conn("PlatformUnavailable"), 24*time.Hour), outcome{}, 9 * time.Minute, 11 * time.Minute},
		"rate limited":         {"the platform's retry time is used", since(conn("PlatformUnavailable"), 0), outcome{retryAt: noon.Add(9 * time.Minute)}, 9 * time.Minute, 9 * time.Minute},
		"limited for a month":  {"the pause is at most an hour", since(conn("PlatformUnavailable"), 0), outcome{retryAt: noon.Add(31 * 24 * time.Hour)}, time.Hour, time.Hour},
		"Secret missing":       {"a Secret that is applied together with it follows soon", since(conn("CredentialsNotFound"), 0), outcome{}, 1800 * time.Millisecond, 2200 * time.Millisecond},
		"Secret missing, old":  {"reading a Secret is cheap", since(conn("CredentialsNotFound"), time.Hour), outcome{}, 54 * time.Second, 66 * time.Second},
		"revoked":              {"a user may store a new token in the Secret", conn("Revoked"), outcome{}, 54 * time.Second, 66 * time.Second},
		"disabled":             {"only a user can change that", conn("Disabled"), outcome{}, 0, 0},
		"not supported":        {"only an upgrade can change that", conn("PlatformNotSupported"), outcome{}, 0, 0},
		"credentials unusable": {"the API server recovers", since(conn("CredentialsUnavailable"), 0), outcome{}, 1800 * time.Millisecond, 2200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 50 {
				tc.conn.UID = types.UID(fmt.Sprint("u", i))
				if got := requeueAfterOutcome(tc.conn, tc.found, quarter, noon); got < tc.low || got > tc.high {
					t.Fatalf("%s: got %s, want %s to %s", tc.reason, got, tc.low, tc.high)
				}
			}
		})
	}
}

func TestNextNeverSkipsTheDueTime(t *testing.T) {
	for _, c := range []*v1alpha1.Connection{
		probed(conn("Connected"), time.Minute), ending(probed(conn("Connected"), time.Minute), 20*time.Minute),
		probed(conn("PlatformUnavailable"), 5*time.Second), probed(conn("Revoked"), time.Minute),
	} {
		wait := requeueAfter(c, quarter, noon)
		if wait <= 0 || due(c, quarter, noon) {
			t.Errorf("%v: waits %s", c.Status.Conditions[0].Reason, wait)
		}
		if at := dueAt(c, quarter); at.Before(noon.Add(wait)) {
			t.Errorf("%v: due at %v, but must wait until %v", c.Status.Conditions[0].Reason, at, noon.Add(wait))
		}
	}
	if got := requeueAfter(withProbe(probed(conn("Revoked"), 500*time.Millisecond), "p2", "p1"), quarter, noon); got != 1500*time.Millisecond {
		t.Errorf("a failing account with a probe request is requeued after %s", got)
	}
	if got := requeueAfter(conn("Disabled"), quarter, noon); got != 0 {
		t.Errorf("a disabled connection wakes after %s", got)
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	now := clocktesting.NewFakePassiveClock(noon)
	m := NewMetrics(registry, now)
	good, bad := ending(conn("Connected"), time.Hour), conn("Revoked")
	good.Status.ReconnectBy = v1alpha1.NewTimePtr(noon.Add(2 * time.Hour))
	bad.Name = "old"
	off := conn("Disabled")
	off.Name, off.Spec.Disabled = "off", true
	// A superseded input does not count if another one is refused.
	for _, why := range []string{v1alpha1.ConditionCredentialsRefused, v1alpha1.ConditionCredentialsSuperseded} {
		meta.SetStatusCondition(&bad.Status.Conditions, metav1.Condition{Type: why, Status: metav1.ConditionTrue, Reason: "Because"})
	}
	m.set(good)
	m.set(bad)
	m.set(off)
	now.SetTime(noon.Add(time.Minute))
	const want = `
# HELP herald_connection_ready 1 if the account can be published to, else 0. Absent while the connection is disabled.
# TYPE herald_connection_ready gauge
herald_connection_ready{connection="acme",namespace="team",platform="x"} 1
herald_connection_ready{connection="old",namespace="team",platform="x"} 0
# HELP herald_connection_reconnect_seconds Seconds until the account's token can no longer be renewed and a user must reconnect the account, negative afterwards. Absent if that time is unknown.
# TYPE herald_connection_reconnect_seconds gauge
herald_connection_reconnect_seconds{connection="acme",namespace="team",platform="x"} 7140
# HELP herald_connection_token_expiry_seconds Seconds until the access token expires, negative afterwards. Absent if it does not expire.
# TYPE herald_connection_token_expiry_seconds gauge
herald_connection_token_expiry_seconds{connection="acme",namespace="team",platform="x"} 3540
# HELP herald_connections_ignoring_credentials Connections that use their current tokens instead of those in their Secret, by the team's namespace and by reason: superseded (Herald has newer ones) or refused (the platform does not accept them, or they belong to another account).
# TYPE herald_connections_ignoring_credentials gauge
herald_connections_ignoring_credentials{namespace="team",why="refused"} 1
herald_connections_ignoring_credentials{namespace="team",why="superseded"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	m.drop(types.NamespacedName{Namespace: "team", Name: "acme"})
	m.drop(types.NamespacedName{Namespace: "team", Name: "old"})
	m.drop(types.NamespacedName{Namespace: "team", Name: "off"})
	if n := testutil.CollectAndCount(m); n != 0 {
		t.Errorf("%d series of deleted connections remain", n)
	}
}

func TestInspectDue(t *testing.T) {
	told := func(left int32, ago time.Duration) *v1alpha1.ConnectionStatus {
		return &v1alpha1.ConnectionStatus{RateLimits: []v1alpha1.RateLimit{{Name: "postsPerDay", Limit: 50, Remaining: left, ObservedAt: v1alpha1.NewTime(noon.Add(-ago))}}}
	}
	held := told(40, time.Minute)
	held.RateLimitedUntil = v1alpha1.NewTimePtr(noon.Add(time.Hour))
	for name, tc := range map[string]struct {
		reason string
		status *v1alpha1.ConnectionStatus
		want   bool
	}{
		"never asked":  {"the quota is unknown", &v1alpha1.ConnectionStatus{}, true},
		"just asked":   {"probes every minute do not query it each time", told(40, time.Minute), false},
		"asked before": {"the known quota is out of date", told(40, 10*time.Minute), true},
		"little left":  {"a nearly used quota is worth a call", told(5, time.Second), true},
		"held":         {"the limit contradicts the known quota", held, true},
		"choices":      {"every probe reads the account's options", &v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{}, RateLimits: told(40, 0).RateLimits}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inspectDue(tc.status, noon); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestReconnectBy(t *testing.T) {
	ends, later := noon.Add(time.Hour), noon.Add(30*24*time.Hour)
	for name, tc := range map[string]struct {
		reason string
		token  credentials.Token
		want   time.Time
	}{
		"refresh token ends":  {"the access token cannot be renewed after that", credentials.Token{Access: "a", Refresh: "r", ExpiresAt: ends, RefreshExpiresAt: later}, later},
		"refresh token lasts": {"an expired access token is renewed", credentials.Token{Access: "a", Refresh: "r", ExpiresAt: ends}, time.Time{}},
		"renews itself":       {"an expired access token cannot renew itself", credentials.Token{Access: "a", Refresh: "a", ExpiresAt: ends}, ends},
		"no renewal":          {"an access token without a refresh token ends the connection", credentials.Token{Access: "a", ExpiresAt: ends}, ends},
		"neither has an end":  {"a Page's token does not expire", credentials.Token{Access: "a"}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reconnectBy(tc.token); !got.Equal(tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestGraceOf(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for reason, tc := range map[string]struct {
		noted   string
		deleted time.Duration
		want    time.Duration
	}{
		"a tool deletes it":                                                  {"", 0, tokenRetention},
		"a user disconnects it":                                              {"2026-12-01T08:59:59Z", 0, 0},
		"the apiserver's clock is ahead":                                     {"2026-12-01T09:00:30Z", 0, 0},
		"the disconnect was long before, and failed":                         {"2026-12-01T08:57:59Z", 0, tokenRetention},
		"the recorded time is in the future":                                 {"2026-12-01T09:02:01Z", 0, tokenRetention},
		"the annotation is not a time":                                       {"yes", 0, tokenRetention},
		"another controller's finalizer delayed the disconnected connection": {"2026-12-01T08:00:00Z", time.Hour - time.Second, 0},
		"a finalizer delayed a connection that a tool deleted an hour later": {"2026-12-01T07:00:00Z", time.Hour, tokenRetention},
	} {
		conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.DisconnectedAnnotation: tc.noted}}}
		if tc.deleted > 0 {
			conn.DeletionTimestamp = &metav1.Time{Time: now.Add(-tc.deleted)}
		}
		if got := gracePeriodOf(conn, now); got != tc.want {
			t.Errorf("%s: stored for %s, want %s", reason, got, tc.want)
		}
	}
}
