// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tokenWords are the platforms' errors for an invalid token: a response path, and its values for an expired and a revoked token.
var tokenWords = map[string]struct {
	status           int
	at               []string
	expired, revoked any
}{
	"x":         {401, []string{"title"}, "Unauthorized", "Unauthorized"},
	"threads":   {400, []string{"error", "error_subcode"}, 463.0, 460.0},
	"instagram": {400, []string{"error", "error_subcode"}, 463.0, 460.0},
	"facebook":  {400, []string{"error", "error_subcode"}, 463.0, 460.0},
	"tiktok":    {401, []string{"error", "code"}, "access_token_invalid", "access_token_invalid"},
	"youtube":   {401, []string{"error", "errors", "0", "reason"}, "authError", "authError"},
}

func TestTokenFaultsOfEveryPlatform(t *testing.T) {
	b := start(t, "")
	for _, tt := range identities {
		words := tokenWords[tt.platform]
		for kind, want := range map[string]any{"token_expired": words.expired, "token_revoked": words.revoked} {
			b.fault(`{"platform":"` + tt.platform + `","operation":"*","kind":"` + kind + `"}`)
			r := b.as(tt.platform, tt.method, tt.path, tt.contentType, tt.body)
			if r.status != words.status || r.at(words.at...) != want {
				t.Errorf("%s %s: %d %s, want %d with %v", tt.platform, kind, r.status, r.body, words.status, want)
			}
			if strings.Contains(r.body, "error_subcode") && (r.at("error", "code") != 190.0 || r.text("error", "type") != "OAuthException" || r.text("error", "fbtrace_id") == "") {
				t.Errorf("%s %s: %s, want Graph's code 190 with a trace id", tt.platform, kind, r.body)
			}
			if r := b.as(tt.platform, tt.method, tt.path, tt.contentType, tt.body); r.status != http.StatusOK {
				t.Errorf("%s: the fault stays: %d %s", tt.platform, r.status, r.body)
			}
		}
	}
}

func TestBadTokensOfEveryPlatform(t *testing.T) {
	b := start(t, "")
	for _, tt := range identities {
		for reason, token := range map[string]string{
			"none": "", "unknown": "nonsense", "another platform's": map[bool]string{true: demoAccess, false: "threads-access-demo"}[tt.platform == "threads"],
		} {
			r := b.call(tt.method, tt.path, token, tt.contentType, tt.body)
			if r.status != tokenWords[tt.platform].status || strings.Contains(r.body, "Herald Demo") {
				t.Errorf("%s, token %s: %d %s", tt.path, reason, r.status, r.body)
			}
		}
	}
}

func TestRateLimitsOfEveryPlatform(t *testing.T) {
	tests := []struct {
		platform, reason string
		status           int
		at               []string
		want             any
		header           map[string]string
	}{
		{
			"threads", "Graph's limit of the app", 403,
			[]string{"error", "code"},
			4.0,
			map[string]string{
				"X-App-Usage":               `{"call_count":100,"total_cputime":100,"total_time":100}`,
				"X-Business-Use-Case-Usage": `{"24000000000000001":[{"type":"threads","call_count":100,"total_cputime":25,"total_time":25,"estimated_time_to_regain_access":2}]}`,
				"Retry-After":               "",
			},
		},
		{
			"instagram", "Graph's limit of the user", 400,
			[]string{"error", "code"},
			17.0,
			map[string]string{"X-Business-Use-Case-Usage": `{"17841400000000001":[{"type":"instagram","call_count":100,"total_cputime":25,"total_time":25,"estimated_time_to_regain_access":2}]}`},
		},
		{
			"facebook", "Graph's limit of the Page", 400,
			[]string{"error", "code"},
			32.0,
			map[string]string{"X-Business-Use-Case-Usage": `{"104000000000001":[{"type":"pages","call_count":100,"total_cputime":25,"total_time":25,"estimated_time_to_regain_access":2}]}`},
		},
		{"tiktok", "no header tells when", 429, []string{"error", "code"}, "rate_limit_exceeded", map[string]string{"Retry-After": ""}},
		{"youtube", "a 403 with a reason", 403, []string{"error", "errors", "0", "reason"}, "rateLimitExceeded", map[string]string{"Retry-After": ""}},
	}
	b := start(t, "")
	for _, tt := range tests {
		t.Run(tt.platform, func(t *testing.T) {
			b.fault(`{"platform":"` + tt.platform + `","operation":"identity","kind":"rate_limit","retry_after_s":61}`)
			for _, ask := range identities {
				if ask.platform != tt.platform {
					continue
				}
				r := b.as(ask.platform, ask.method, ask.path, ask.contentType, ask.body)
				if r.status != tt.status || r.at(tt.at...) != tt.want {
					t.Errorf("%s: %d %s, want %d with %v", tt.reason, r.status, r.body, tt.status, tt.want)
				}
				for name, want := range tt.header {
					if got := r.header.Get(name); got != want {
						t.Errorf("%s: header %s is %q, want %q: minutes, never too few", tt.reason, name, got, want)
					}
				}
				break
			}
		})
	}
}

// TestFaultsOnRefresh makes the token renewal of each platform fail.
func TestFaultsOnRefresh(t *testing.T) {
	google := "client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=youtube-refresh-demo"
	tiktok := "client_key=c&client_secret=s&grant_type=refresh_token&refresh_token=tiktok-refresh-demo"
	tests := []struct {
		platform, method, path, contentType, body, fault string
		status                                           int
		at                                               []string
		want                                             any
	}{
		{"threads", "GET", "/threads/refresh_access_token", "", "", `"kind":"token_expired"`, 400, []string{"error", "error_subcode"}, 463.0},
		{"threads", "GET", "/threads/refresh_access_token", "", "", `"kind":"status","status":503`, 503, []string{"error", "is_transient"}, true},
		{"instagram", "GET", "/instagram/refresh_access_token", "", "", `"kind":"token_revoked"`, 400, []string{"error", "error_subcode"}, 460.0},
		{"tiktok", "POST", "/tiktok/v2/oauth/token/", formType, tiktok, `"kind":"token_revoked"`, 400, []string{"error"}, "invalid_grant"},
		{"tiktok", "POST", "/tiktok/v2/oauth/token/", formType, tiktok, `"kind":"status","status":503`, 503, []string{"error"}, "temporarily_unavailable"},
		{"tiktok", "POST", "/tiktok/v2/oauth/token/", formType, tiktok, `"kind":"status","status":401`, 401, []string{"error"}, "invalid_client"},
		{"tiktok", "POST", "/tiktok/v2/oauth/token/", formType, tiktok, `"kind":"rate_limit"`, 429, []string{"error"}, "rate_limit_exceeded"},
		{"youtube", "POST", "/youtube/token", formType, google, `"kind":"token_expired"`, 400, []string{"error"}, "invalid_grant"},
		{"youtube", "POST", "/youtube/token", formType, google, `"kind":"status","status":500`, 500, []string{"error"}, "internal_failure"},
		{"youtube", "POST", "/youtube/token", formType, google, `"kind":"rate_limit"`, 429, []string{"error"}, "rate_limit_exceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.platform+" "+tt.fault, func(t *testing.T) {
			b := start(t, "")
			b.fault(`{"platform":"` + tt.platform + `","operation":"*","kind":"token_expired","times":9}`) // does not match a renewal
			b.fault(`{"platform":"` + tt.platform + `","operation":"refresh_token",` + tt.fault + `}`)
			if r := b.as(tt.platform, tt.method, tt.path, tt.contentType, tt.body); r.status != tt.status || r.at(tt.at...) != tt.want {
				t.Errorf("%d %s, want %d with %v", r.status, r.body, tt.status, tt.want)
			}
		})
	}
}

// TestStatusFaultsOfEveryPlatform checks each platform's wording for each failure status.
func TestStatusFaultsOfEveryPlatform(t *testing.T) {
	at := map[string][]string{
		"x": {"status"}, "threads": {"error", "code"}, "instagram": {"error", "code"}, "facebook": {"error", "code"},
		"tiktok": {"error", "code"}, "youtube": {"error", "errors", "0", "reason"},
	}
	graph := map[string]any{"400": 100.0, "401": 190.0, "403": 10.0, "404": 2500.0, "429": 613.0, "500": 1.0, "503": 2.0}
	want := map[string]map[string]any{
		"x":       {"400": 400.0, "401": 401.0, "403": 403.0, "404": 404.0, "429": 429.0, "500": 500.0, "503": 503.0},
		"threads": graph, "instagram": graph, "facebook": graph,
		"tiktok": {
			"400": "invalid_params", "401": "access_token_invalid", "403": "spam_risk_user_banned_from_posting",
			"404": "invalid_params", "429": "rate_limit_exceeded", "500": "internal_error", "503": "internal_error",
		},
		"youtube": {
			"400": "badRequest", "401": "authError", "403": "forbidden", "404": "notFound", "429": "rateLimitExceeded",
			"500": "backendError", "503": "backendError",
		},
	}
	b := start(t, "")
	for _, ask := range identities {
		got := map[string]any{}
		for status := range want[ask.platform] {
			b.fault(`{"platform":"` + ask.platform + `","operation":"identity","kind":"status","status":` + status + `}`)
			got[status] = b.as(ask.platform, ask.method, ask.path, ask.contentType, ask.body).at(at[ask.platform]...)
		}
		if diff := cmp.Diff(want[ask.platform], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ask.path, diff)
		}
	}
}

func TestFaultsForOneAccountOfAPlatform(t *testing.T) {
	b := start(t, "")
	for _, ask := range identities {
		other := b.control(http.MethodPut, "/accounts/"+ask.platform+"/4712", "", map[bool]int{true: 201, false: 200}[ask.id != nil]).text("data", "access_token")
		b.fault(`{"platform":"` + ask.platform + `","operation":"identity","kind":"status","status":503,"account":"4712"}`)
		if r := b.as(ask.platform, ask.method, ask.path, ask.contentType, ask.body); r.status != http.StatusOK {
			t.Errorf("%s: the fault of one account met another: %d", ask.path, r.status)
		}
		if r := b.call(ask.method, ask.path, other, ask.contentType, ask.body); r.status != http.StatusServiceUnavailable {
			t.Errorf("%s: the fault did not meet its account: %d", ask.path, r.status)
		}
	}
}
