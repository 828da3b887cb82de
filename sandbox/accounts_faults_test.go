// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// tokenErrors are the platforms' errors for an expired and a revoked token.
var tokenErrors = map[string]struct{ expired, revoked is }{
	"x":         {xProblem(401, "Unauthorized"), xProblem(401, "Unauthorized")},
	"threads":   {graphSubcode(190, 463), graphSubcode(190, 460)},
	"instagram": {graphSubcode(190, 463), graphSubcode(190, 460)},
	"facebook":  {graphSubcode(190, 463), graphSubcode(190, 460)},
	"tiktok":    {tiktokError(401, "access_token_invalid"), tiktokError(401, "access_token_invalid")},
	"youtube":   {youtubeError(401, "authError"), youtubeError(401, "authError")},
	"mastodon":  {mastodonError(401, "The access token"), mastodonError(401, "The access token was revoked")},
	"bluesky":   {blueskyError(400, "ExpiredToken"), blueskyError(401, "AuthenticationRequired")},
}

// TestTokensOfEveryPlatform checks the errors for token faults, and for tokens that never worked.
func TestTokensOfEveryPlatform(t *testing.T) {
	b := start(t, "")
	for i, tt := range identities {
		token, errors := b.bearer(tt.platform, demo(t, tt.platform).AccessToken), tokenErrors[tt.platform]
		for kind, want := range map[string]is{"token_expired": errors.expired, "token_revoked": errors.revoked} {
			b.fault(`{"platform":"` + tt.platform + `","operation":"*","kind":"` + kind + `"}`)
			b.identify(i, token).want(t, tt.path+" with "+kind, want...)
			b.identify(i, token).want(t, tt.path+" after the fault", 200)
		}
		foreign := map[bool]string{true: demoAccess, false: "threads-access-demo"}[tt.platform == "threads"]
		for why, token := range map[string]string{"no token": "", "an unknown token": "nonsense", "another platform's token": foreign} {
			status := errors.expired[0]
			if tt.platform == "bluesky" && token == "" {
				status = 401 // Bluesky distinguishes it
			}
			b.identify(i, token).want(t, tt.path+" with "+why, status, "!Herald Demo")
		}
	}
}

func TestRateLimitsOfEveryPlatform(t *testing.T) {
	b := start(t, "")
	// usage is Graph's header: its time is in minutes, rounded up.
	usage := func(account, kind string) string {
		return `X-Business-Use-Case-Usage: {"` + account + `":[{"type":"` + kind +
			`","call_count":100,"total_cputime":25,"total_time":25,"estimated_time_to_regain_access":2}]}`
	}
	for platform, want := range map[string]is{
		"threads": { // the app's limit
			403, "error.code=4", usage(threadsID, "threads"), "Retry-After: ",
			`X-App-Usage: {"call_count":100,"total_cputime":100,"total_time":100}`,
		},
		"instagram": {400, "error.code=17", usage(instagramID, "instagram")}, // the user's limit
		"facebook":  {400, "error.code=32", usage(pageID, "pages")},          // the Page's limit
		"tiktok":    {429, "error.code=rate_limit_exceeded", "Retry-After: "},
		"youtube":   {403, "error.errors.0.reason=rateLimitExceeded", "Retry-After: "},
		"mastodon":  {429, "error=Too many requests", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2026-12-01T09:01:01.123000Z"},
		"bluesky":   {429, "error=RateLimitExceeded", "RateLimit-Remaining: 0", "RateLimit-Reset: 1796115661"},
	} {
		for i, tt := range identities {
			if tt.platform == platform {
				token := b.bearer(platform, demo(t, platform).AccessToken)
				b.fault(`{"platform":"` + platform + `","operation":"identity","kind":"rate_limit","retry_after_s":61}`)
				b.identify(i, token).want(t, "the rate limit of "+platform, want...)
			}
		}
	}
}

// TestFaultsOnRefresh makes the token renewal of each platform fail.
func TestFaultsOnRefresh(t *testing.T) {
	for _, tt := range []struct {
		platform, fault string
		want            is
	}{
		{"threads", `"kind":"token_expired"`, is{400, "error.error_subcode=463"}},
		{"threads", `"kind":"status","status":503`, is{503, "error.is_transient=true"}},
		{"instagram", `"kind":"token_revoked"`, is{400, "error.error_subcode=460"}},
		{"tiktok", `"kind":"token_revoked"`, is{400, "error=invalid_grant"}},
		{"tiktok", `"kind":"status","status":503`, is{503, "error=temporarily_unavailable"}},
		{"tiktok", `"kind":"status","status":401`, is{401, "error=invalid_client"}},
		{"tiktok", `"kind":"rate_limit"`, is{429, "error=rate_limit_exceeded"}},
		{"youtube", `"kind":"token_expired"`, is{400, "error=invalid_grant"}},
		{"youtube", `"kind":"status","status":500`, is{500, "error=internal_failure"}},
		{"youtube", `"kind":"rate_limit"`, is{429, "error=rate_limit_exceeded"}},
	} {
		b := start(t, "")
		refresh := map[string]func() reply{
			"threads":   func() reply { return b.read("threads", "/threads/refresh_access_token") },
			"instagram": func() reply { return b.read("instagram", "/instagram/refresh_access_token") },
			"tiktok":    func() reply { return tiktokRefresh(b, "tiktok-refresh-demo") },
			"youtube": func() reply {
				return b.call(http.MethodPost, "/youtube/token", "", formType,
					"client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=youtube-refresh-demo")
			},
		}
		b.fault(`{"platform":"` + tt.platform + `","operation":"*","kind":"token_expired","times":9}`) // does not match a renewal
		b.fault(`{"platform":"` + tt.platform + `","operation":"refresh_token",` + tt.fault + `}`)
		refresh[tt.platform]().want(t, tt.platform+" "+tt.fault, tt.want...)
	}
}

// TestStatusFaultsOfEveryPlatform checks each platform's error for each failure status, and that a fault of one account does not
// affect another.
func TestStatusFaultsOfEveryPlatform(t *testing.T) {
	b := start(t, "")
	graph := map[int]string{400: "100", 401: "190", 403: "10", 404: "2500", 429: "613", 500: "1", 503: "2"}
	errors := map[string]map[int]string{
		"x":       {400: "400", 401: "401", 403: "403", 404: "404", 429: "429", 500: "500", 503: "503"},
		"threads": graph, "instagram": graph, "facebook": graph,
		"tiktok": {
			400: "invalid_params", 401: "access_token_invalid", 403: "spam_risk_user_banned_from_posting", 404: "invalid_params",
			429: "rate_limit_exceeded", 500: "internal_error", 503: "internal_error",
		},
		"youtube": {
			400: "badRequest", 401: "authError", 403: "forbidden", 404: "notFound", 429: "rateLimitExceeded", 500: "backendError",
			503: "backendError",
		},
		"mastodon": {
			400: "Bad Request", 401: "The access token is invalid", 403: "This action is not allowed", 404: "Record not found", 429: "Too many requests",
			500: "Internal Server Error", 503: "Service Unavailable",
		},
		"bluesky": {
			400: "InvalidRequest", 401: "AuthenticationRequired", 403: "Forbidden", 404: "XRPCNotSupported", 429: "RateLimitExceeded",
			500: "InternalServerError", 503: "NotEnoughResources",
		},
	}
	for i, tt := range identities {
		path := map[string]string{"x": "status=", "youtube": "error.errors.0.reason=", "mastodon": "error=", "bluesky": "error="}[tt.platform]
		if path == "" {
			path = "error.code="
		}
		own, id := b.bearer(tt.platform, demo(t, tt.platform).AccessToken), numbered(tt.platform, fmt.Sprint("471", i))
		for status, want := range errors[tt.platform] {
			b.fault(fmt.Sprintf(`{"platform":%q,"operation":"identity","kind":"status","status":%d}`, tt.platform, status))
			b.identify(i, own).want(t, fmt.Sprint(tt.path, " with status ", status), path+want)
		}
		other := b.bearer(tt.platform, b.account(tt.platform, id, ""))
		b.fault(`{"platform":"` + tt.platform + `","operation":"identity","kind":"status","status":503,"account":"` + id + `"}`)
		b.identify(i, own).want(t, tt.path+" with another account's fault", 200)
		b.identify(i, other).want(t, tt.path+" with the account's own fault", 503)
	}
}

func TestYouTubeDailyUploadLimit(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"youtube","operation":"create","kind":"status","status":429}`)
	b.startOnYouTube(plainVideo, 1000).want(t, "the error names the limit", youtubeError(429, "rateLimitExceeded")...).
		want(t, "the limit", "error.message~'Video Uploads per day'")
	b.fault(`{"platform":"youtube","operation":"list","kind":"status","status":429}`)
	r := b.read("youtube", strings.Replace(youtubeItems, "snippet,contentDetails,status", "id", 1))
	r.want(t, "other calls do not have that limit", 429, "error.errors.0.reason=rateLimitExceeded", "!per day")
}
