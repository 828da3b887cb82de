// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		d      time.Duration
		want   string
	}{
		"Now":          {"the distance is zero", 0, "in a moment"},
		"JustNow":      {"seconds ago", -44 * time.Second, "just now"},
		"Minute":       {"from three quarters on, seconds round up to a minute", 45 * time.Second, "in 1 minute"},
		"MinuteAgo":    {"one minute is singular", -time.Minute, "1 minute ago"},
		"Minutes":      {"minutes up to an hour and a half", 89 * time.Minute, "in 89 minutes"},
		"Hours":        {"hours from an hour and a half", 90 * time.Minute, "in 2 hours"},
		"HoursAgo":     {"hours are used up to a day and a half", -35 * time.Hour, "35 hours ago"},
		"Days":         {"the distance is in days from 36 hours", 36 * time.Hour, "in 2 days"},
		"Year":         {"days are the largest unit", 365 * 24 * time.Hour, "in 365 days"},
		"LongestThere": {"the longest duration", 1<<63 - 1, "in 106751 days"},
		"LongestBack":  {"negative durations are in the past", -1 << 63, "106751 days ago"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := distance(tc.d); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "the token has ended": "The token has ended.", "ärgerlich!": "Ärgerlich!", "Is it?": "Is it?", "\xff": "\xff.",
	} {
		if got := sentence(text); got != want && text != "\xff" {
			t.Errorf("sentence(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestEveryErrorHasAText verifies that every error code of package bridge has a heading.
func TestEveryErrorHasAText(t *testing.T) {
	t.Parallel()
	for _, code := range []bridge.Code{
		bridge.CodeNotFound, bridge.CodeConflict, bridge.CodeSubscriptionRequired, bridge.CodeReconnectRequired, bridge.CodeReadinessUnavailable,
		bridge.CodeValidation, bridge.CodeTikTokPrivacy, bridge.CodeUnauthorized, bridge.CodeRateLimited, bridge.CodeInternal, "NEW",
	} {
		if titleOfError(&bridge.Error{Code: code}) == "" {
			t.Errorf("%s has no text", code)
		}
	}
}

func TestFlash(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, query string
		want          bool
	}{
		"Known":   {"a known notice is shown", "said=created", true},
		"Unknown": {"a URL cannot add texts", "said=You+won", false},
		"None":    {"most pages have no notice", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &visit{Request: newRequest(nil, "/?"+tc.query, nil)}
			if got := v.flash() != nil; got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	a := sharedAssets()
	get := func(path string, header ...string) *httptest.ResponseRecorder {
		mux := http.NewServeMux()
		mux.Handle("GET /assets/{file}", a)
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		for _, value := range header {
			r.Header.Add("Accept-Encoding", value)
		}
		out := httptest.NewRecorder()
		mux.ServeHTTP(out, r)
		return out
	}
	for file, kind := range map[string]string{"app.js": "javascript", "lists.js": "javascript", "upload.js": "javascript", "transfer.js": "javascript", "files.js": "javascript", "crop.js": "javascript", "htmx.min.js": "javascript", "style.css": "text/css", "mark.svg": "image/svg+xml"} {
		path := a.path(file)
		plain := get(path)
		if plain.Code != http.StatusOK || !strings.Contains(plain.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: %d, %s", file, plain.Code, plain.Header().Get("Content-Type"))
		}
		if got := plain.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: a name with a hash never changes, but Cache-Control is %q", file, got)
		}
		if path == "/assets/"+file || hashed(file, []byte("another")) == strings.TrimPrefix(path, "/assets/") {
			t.Errorf("%s: the name %s does not follow from the content", file, path)
		}
		packed := get(path, "deflate, gzip;q=0.5, br")
		reader, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if unpacked, err := io.ReadAll(reader); err != nil || !bytes.Equal(unpacked, plain.Body.Bytes()) {
			t.Errorf("%s: gunzip returns a different file: %v", file, err)
		}
		for _, without := range []string{"", "br", "gzip;q=0", "notgzip"} {
			if got := get(path, without).Header().Get("Content-Encoding"); got != "" {
				t.Errorf("%s: a client that accepts %q gets %s", file, without, got)
			}
		}
	}
	for _, path := range []string{"/assets/app.js", "/assets/app-000000000000.js", "/assets/README.md", "/assets/..%2fassets.go"} {
		if got := get(path); got.Code != http.StatusNotFound || got.Header().Get("Cache-Control") != "" {
			t.Errorf("%s: %d, Cache-Control %q", path, got.Code, got.Header().Get("Cache-Control"))
		}
	}
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	ready := func(status metav1.ConditionStatus, reason, message string) func(*v1alpha1.Connection) {
		return func(c *v1alpha1.Connection) {
			c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
		}
	}
	for name, tc := range map[string]struct {
		reason    string
		edit      func(*v1alpha1.Connection)
		tone      tone
		says      string
		reconnect bool
	}{
		"Good":     {"no action is needed", func(*v1alpha1.Connection) {}, "good", "", false},
		"New":      {"its state is unknown", func(c *v1alpha1.Connection) { c.Status.Conditions = nil }, "info", "asking the platform", false},
		"Disabled": {"a disabled connection hides all other states", func(c *v1alpha1.Connection) { c.Spec.Disabled, c.Status.Conditions = true, nil }, "info", "disabled", false},
		"Ended":    {"the connection needs a new token", ready(metav1.ConditionFalse, v1alpha1.ReasonTokenExpired, "the token has ended"), "bad", "The token has ended.", true},
		"Down":     {"a new token does not help", ready(metav1.ConditionFalse, v1alpha1.ReasonPlatformUnavailable, "it answers 503"), "bad", "It answers 503.", false},
		"Plan":     {"a new token does not increase the plan", ready(metav1.ConditionFalse, v1alpha1.ReasonPlanLimit, "one too many"), "bad", "One too many.", false},
		"NoTeam":   {"a new token does not create a team", ready(metav1.ConditionFalse, v1alpha1.ReasonNoTeam, "no Team owns it"), "bad", "No Team owns it.", false},
		"NotKnown": {"an unknown state is not shown as good", ready(metav1.ConditionUnknown, "Probing", ""), "bad", "", true},
		"Limited":  {"the platform has a limit", func(c *v1alpha1.Connection) { c.Status.RateLimitedUntil = v1alpha1.NewTimePtr(now.Add(time.Hour)) }, "warning", "does not accept calls", false},
		"Locked": {"its owner has to act on the platform", func(c *v1alpha1.Connection) {
			c.Status.RateLimitedUntil = v1alpha1.NewTimePtr(now.Add(time.Hour))
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionPublishingRefused, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccountRestricted, Message: "it is locked",
			})
		}, "bad", "It is locked.", false},
		"Suspended":  {"a new token does not end a suspension", ready(metav1.ConditionFalse, v1alpha1.ReasonAccountRestricted, "it is suspended"), "bad", "It is suspended.", false},
		"WasLimited": {"the rate limit has ended", func(c *v1alpha1.Connection) { c.Status.RateLimitedUntil = v1alpha1.NewTimePtr(now) }, "good", "", false},
		"EndsSoon": {"users are warned in time", func(c *v1alpha1.Connection) {
			c.Status.ReconnectBy = v1alpha1.NewTimePtr(now.Add(warnBefore - time.Second))
		}, "warning", "in 14 days", true},
		"EndsLater":   {"users are not warned earlier", func(c *v1alpha1.Connection) { c.Status.ReconnectBy = v1alpha1.NewTimePtr(now.Add(warnBefore)) }, "good", "", false},
		"EndedBefore": {"an expired account needs attention", func(c *v1alpha1.Connection) { c.Status.ReconnectBy = v1alpha1.NewTimePtr(now.Add(-time.Hour)) }, "warning", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := account(acme, "one", v1alpha1.PlatformThreads)
			tc.edit(c)
			got := stateOf(c, now)
			if got.tone != tc.tone || !strings.Contains(got.text, tc.says) || got.reconnect != tc.reconnect {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if strings.Contains(got.text, "has to") && strings.Contains(got.text, "ago") {
				t.Errorf("%s: an account connected an hour ago: %s", tc.reason, got.text)
			}
		})
	}
}

func TestBeingChecked(t *testing.T) {
	t.Parallel()
	noSecret := []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCredentialsNotFound, Message: "the Secret does not exist",
	}}
	for name, tc := range map[string]struct {
		reason     string
		age        time.Duration
		conditions []metav1.Condition
		want       bool
	}{
		"New":      {"the manager has not checked the account", time.Second, nil, true},
		"NoSecret": {"the manager checked before the Secret existed", time.Second, noSecret, true},
		"Lost":     {"the Secret is overdue, so the user gets a message", storing, noSecret, false},
		"Revoked": {"other problems are shown", time.Second, []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRevoked,
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := account(acme, "one", v1alpha1.PlatformThreads)
			c.CreationTimestamp, c.Status.Conditions = metav1.NewTime(now.Add(-tc.age)), tc.conditions
			if got := stateOf(c, now).label == "Being checked"; got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
			v := &visit{now: now, namespace: acme}
			w := newWorld(clocktesting.NewFakeClock(now))
			var page strings.Builder
			if err := h.Ul(w.site.watch(v, []*v1alpha1.Connection{c})).Render(&page); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(page.String(), "hx-get"); got != tc.want {
				t.Errorf("%s: the list reloads itself: %t", tc.reason, got)
			}
		})
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		made   time.Time
		want   string
	}{
		"OfThisRequest": {"the request precedes the object, so it is not shown", now.Add(5 * time.Millisecond), "made <time datetime=\"2026-12-01T08:59:59Z\""},
		"AtOnce":        {"timestamps with the same second are ambiguous", now, "just now"},
		"Older":         {"other requests have an age", now.Add(-5 * time.Minute), "5 minutes ago"},
		"NotKnown":      {"without a time, the age is unknown", time.Time{}, "<code>hrld_1…</code>"},
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

// TestGrouped verifies how large numbers are written.
func TestGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 250000: "250,000", 1000000: "1,000,000"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

// TestForPeople verifies how messages that API clients also read are worded on pages.
func TestForPeople(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"x accepts at most 4 images; leave some out":                                             "X accepts at most 4 images; leave some out.",
		"360 weighted characters are too many for x, which accepts at most 280":                  "360 characters are too many for X, which accepts at most 280.",
		"3 UTF-16 code units are too many for tiktok, which accepts at most 2":                   "3 characters are too many for TikTok, which accepts at most 2.",
		"6 characters (an emoji counts its UTF-8 bytes) are too many for threads, which accepts": "6 characters are too many for Threads, which accepts.",
		`instagram does not accept the image "x.webp" as it is`:                                  `Instagram does not accept the image "x.webp" as it is.`,
		"a post to youtube needs a title unless it is a draft":                                   "A post to YouTube needs a title unless it is a draft.",
		"name at least one connection to post to":                                                "Name at least one account to post to.",
		"tiktok does not accept posts of category text; choose another connection":               "TikTok does not accept posts of category text; choose another account.",
		"it is a fine day": "It is a fine day.",
	} {
		if got := sentence(message); got != want {
			t.Errorf("%q is shown as %q, want %q", message, got, want)
		}
	}
}
