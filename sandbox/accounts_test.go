// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The identity requests for each platform's demo account, as documented.
var identities = []struct {
	platform, method, path, contentType, body string
	// id is the response path of the account's ID.
	id []string
}{
	{"x", "GET", "/x/2/users/me", "", "", []string{"data", "id"}},
	{"threads", "GET", "/threads/v1.0/me?fields=id,username,name,threads_profile_picture_url,is_verified", "", "", []string{"id"}},
	{"instagram", "GET", "/instagram/v25.0/me?fields=user_id,username,name,profile_picture_url,account_type", "", "", []string{"user_id"}},
	{"facebook", "GET", "/facebook/v25.0/me?fields=id,name,username,picture{url}", "", "", []string{"id"}},
	{"tiktok", "GET", "/tiktok/v2/user/info/?fields=open_id,avatar_url,display_name,username", "", "", []string{"data", "user", "open_id"}},
	{"tiktok", "POST", "/tiktok/v2/post/publish/creator_info/query/", "application/json; charset=UTF-8", "{}", nil},
	{"youtube", "GET", "/youtube/youtube/v3/channels?part=snippet,contentDetails&mine=true", "", "", []string{"items", "0", "id"}},
}

func TestIdentityOfDemoAccounts(t *testing.T) {
	b := start(t, "")
	for _, tt := range identities {
		account := demo(t, tt.platform)
		r := b.as(tt.platform, tt.method, tt.path, tt.contentType, tt.body)
		if r.status != http.StatusOK || tt.id != nil && r.text(tt.id...) != account.ID {
			t.Errorf("%s %s: %d %s, want the account %s", tt.method, tt.path, r.status, r.body, account.ID)
		}
		if !strings.Contains(strings.ToLower(r.body), strings.ToLower(account.Username)) && tt.platform != "youtube" {
			t.Errorf("%s: no username in %s", tt.path, r.body)
		}
	}
}

func TestIdentityAnswers(t *testing.T) {
	b := start(t, "")
	picture := func(platform string) string {
		return b.http.URL + "/_assets/avatar/" + platform + "/" + demo(t, platform).ID + ".svg"
	}
	tests := []struct {
		platform, path string
		at             []string
		want           any
	}{
		{"threads", "/threads/v1.0/me", nil, map[string]any{"id": "24000000000000001"}},
		{"threads", "/threads/v1.0/24000000000000001?fields=id,username,name,threads_profile_picture_url,is_verified", nil, map[string]any{
			"id": "24000000000000001", "username": "herald_demo", "name": "Herald Demo", "is_verified": false,
			"threads_profile_picture_url": picture("threads"),
		}},
		{"instagram", "/instagram/v26.0/me?fields=user_id,username,account_type,profile_picture_url", nil, map[string]any{
			// The app-scoped ID differs from the ID in paths.
			"id": "12168631381883363", "user_id": "17841400000000001", "username": "herald_demo", "account_type": "BUSINESS",
			"profile_picture_url": picture("instagram"),
		}},
		{"facebook", "/facebook/v26.0/me", nil, map[string]any{"id": "104000000000001", "name": "Herald Demo"}},
		{"facebook", "/facebook/v25.0/me?fields=username,picture{url}", nil, map[string]any{
			"id": "104000000000001", "username": "herald.demo", "picture": map[string]any{"data": map[string]any{"url": picture("facebook")}},
		}},
		{"tiktok", "/tiktok/v2/user/info/?fields=open_id,display_name,username,avatar_url", []string{"data", "user"}, map[string]any{
			"open_id": "-000HeraldDemoAccount00000000001", "display_name": "Herald Demo", "username": "herald_demo",
			"avatar_url": picture("tiktok"),
		}},
		{"youtube", "/youtube/youtube/v3/channels?part=contentDetails&mine=true", []string{"items", "0", "contentDetails"}, map[string]any{
			"relatedPlaylists": map[string]any{"likes": "", "uploads": "UUHeraldDemo000000000001"},
		}},
		{"youtube", "/youtube/youtube/v3/channels?part=snippet&part=id&mine=true", []string{"items", "0", "snippet", "customUrl"}, "@herald_demo"},
	}
	for _, tt := range tests {
		r := b.read(tt.platform, tt.path)
		if diff := cmp.Diff(tt.want, r.at(tt.at...)); r.status != http.StatusOK || diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", tt.path, r.status, diff)
		}
	}
}

func TestCreatorInfo(t *testing.T) {
	b := start(t, "")
	ask := func() reply {
		return b.as("tiktok", http.MethodPost, "/tiktok/v2/post/publish/creator_info/query/", "application/json", "")
	}
	want := map[string]any{
		"creator_avatar_url": b.http.URL + "/_assets/avatar/tiktok/-000HeraldDemoAccount00000000001.svg",
		"creator_username":   "herald_demo", "creator_nickname": "Herald Demo",
		"privacy_level_options": []any{"PUBLIC_TO_EVERYONE", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"},
		"comment_disabled":      false, "duet_disabled": false, "stitch_disabled": false, "max_video_post_duration_sec": 600.0,
	}
	r := ask()
	if diff := cmp.Diff(any(want), r.at("data")); diff != "" {
		t.Errorf("a public account (-want +got):\n%s", diff)
	}
	if r.text("error", "code") != "ok" || r.text("error", "log_id") == "" {
		t.Errorf("no envelope: %s", r.body)
	}
	account := "/accounts/tiktok/" + demo(t, "tiktok").ID
	b.control(http.MethodPut, account, `{"private":true,"comment_disabled":true}`, http.StatusOK)
	want["privacy_level_options"] = []any{"FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"}
	want["comment_disabled"], want["duet_disabled"], want["stitch_disabled"] = true, true, true
	if diff := cmp.Diff(any(want), ask().at("data")); diff != "" {
		t.Errorf("a private account without comments (-want +got):\n%s", diff)
	}
	b.control(http.MethodPut, account, `{"quota":0}`, http.StatusOK)
	if r := ask(); r.status != http.StatusOK || r.text("error", "code") != "spam_risk_too_many_posts" {
		t.Errorf("without room for a post: %d %s, want the error within a 200", r.status, r.body)
	}
}

func TestRefreshRefusals(t *testing.T) {
	const json = "application/json"
	tests := []struct {
		name, method, path, contentType, body string
		status                                int
		at                                    []string
		want                                  any
	}{
		{"Threads: a young token", "GET", "/threads/refresh_access_token?grant_type=th_refresh_token&access_token=threads-access-demo", "", "", 400, []string{"error", "code"}, 100.0},
		{"Threads: Instagram's grant", "GET", "/threads/refresh_access_token?grant_type=ig_refresh_token&access_token=threads-access-demo", "", "", 400, []string{"error", "code"}, 100.0},
		{"Threads: no grant", "GET", "/threads/refresh_access_token?access_token=threads-access-demo", "", "", 400, []string{"error", "code"}, 100.0},
		{"Threads: no token", "GET", "/threads/refresh_access_token?grant_type=th_refresh_token", "", "", 400, []string{"error", "code"}, 104.0},
		{"Threads: another platform's token", "GET", "/threads/refresh_access_token?grant_type=th_refresh_token&access_token=instagram-access-demo", "", "", 400, []string{"error", "code"}, 190.0},
		{"Threads: a POST", "POST", "/threads/refresh_access_token", formType, "grant_type=th_refresh_token&access_token=threads-access-demo", 400, []string{"error", "code"}, 2500.0},
		{"Threads: a client, too", "GET", "/threads/refresh_access_token?grant_type=th_refresh_token&client_id=1&access_token=threads-access-demo", "", "", 400, []string{"error", "code"}, 100.0},
		{"Facebook: there is none", "GET", "/facebook/refresh_access_token?grant_type=fb_refresh_token&access_token=facebook-access-demo", "", "", 404, nil, nil},
		{"TikTok: client_id", "POST", "/tiktok/v2/oauth/token/", formType, "client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=tiktok-refresh-demo", 401, []string{"error"}, "invalid_client"},
		{"TikTok: no secret", "POST", "/tiktok/v2/oauth/token/", formType, "client_key=c&grant_type=refresh_token&refresh_token=tiktok-refresh-demo", 401, []string{"error"}, "invalid_client"},
		{"TikTok: JSON", "POST", "/tiktok/v2/oauth/token/", json, `{"client_key":"c"}`, 400, []string{"error"}, "invalid_request"},
		{"TikTok: no token", "POST", "/tiktok/v2/oauth/token/", formType, "client_key=c&client_secret=s&grant_type=refresh_token", 400, []string{"error"}, "invalid_request"},
		{"TikTok: an access token", "POST", "/tiktok/v2/oauth/token/", formType, "client_key=c&client_secret=s&grant_type=refresh_token&refresh_token=tiktok-access-demo", 400, []string{"error"}, "invalid_grant"},
		{"TikTok: another platform's token", "POST", "/tiktok/v2/oauth/token/", formType, "client_key=c&client_secret=s&grant_type=refresh_token&refresh_token=youtube-refresh-demo", 400, []string{"error"}, "invalid_grant"},
		{"TikTok: without the slash at the end", "POST", "/tiktok/v2/oauth/token", formType, "client_key=c", 404, []string{"error", "code"}, "invalid_params"},
		{"YouTube: no client", "POST", "/youtube/token", formType, "client_secret=s&grant_type=refresh_token&refresh_token=youtube-refresh-demo", 400, []string{"error"}, "invalid_request"},
		{"YouTube: no secret", "POST", "/youtube/token", formType, "client_id=c&grant_type=refresh_token&refresh_token=youtube-refresh-demo", 400, []string{"error"}, "invalid_request"},
		{"YouTube: another grant", "POST", "/youtube/token", formType, "client_id=c&client_secret=s&grant_type=password&refresh_token=youtube-refresh-demo", 400, []string{"error"}, "unsupported_grant_type"},
		{"YouTube: an unknown token", "POST", "/youtube/token", formType, "client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=x", 400, []string{"error"}, "invalid_grant"},
		{"YouTube: JSON", "POST", "/youtube/token", json, `{}`, 400, []string{"error"}, "invalid_request"},
	}
	b := start(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(tt.method, tt.path, "", tt.contentType, tt.body)
			if r.status != tt.status || tt.at != nil && r.at(tt.at...) != tt.want {
				t.Errorf("%d %s, want %d with %v", r.status, r.body, tt.status, tt.want)
			}
		})
	}
}

func TestLongLivedTokens(t *testing.T) {
	for platform, grant := range map[string]string{"threads": "th_refresh_token", "instagram": "ig_refresh_token"} {
		t.Run(platform, func(t *testing.T) {
			b := start(t, "")
			first := demo(t, platform).AccessToken
			me := map[string]string{"threads": "/threads/v1.0/me", "instagram": "/instagram/v25.0/me"}[platform]
			refresh := func(token string) reply {
				return b.call(http.MethodGet, "/"+platform+"/refresh_access_token?grant_type="+grant+"&access_token="+token, "", "", "")
			}
			b.clock.Step(24*time.Hour - time.Second)
			if r := refresh(first); r.status != http.StatusBadRequest || !strings.Contains(r.body, "24h") {
				t.Errorf("a second too early: %d %s", r.status, r.body)
			}
			b.clock.Step(time.Second)
			r := refresh(first)
			second := r.text("access_token")
			if r.status != http.StatusOK || second == first || r.at("expires_in") != 60.0*24*3600 || r.text("token_type") != "bearer" {
				t.Fatalf("after a day: %d %s", r.status, r.body)
			}
			if r := refresh(second); r.status != http.StatusBadRequest {
				t.Errorf("the new one is young again: %d %s", r.status, r.body)
			}
			b.clock.Step(59 * 24 * time.Hour)
			if r := b.call(http.MethodGet, me, first, "", ""); r.at("error", "code") != 190.0 || r.at("error", "error_subcode") != 463.0 {
				t.Errorf("the first token after 60 days: %d %s", r.status, r.body)
			}
			if r := refresh(first); r.at("error", "code") != 190.0 {
				t.Errorf("an expired token cannot be refreshed: %d %s", r.status, r.body)
			}
			if r := b.call(http.MethodGet, me, second, "", ""); r.status != http.StatusOK {
				t.Errorf("the second token has a day left: %d %s", r.status, r.body)
			}
			b.clock.Step(24 * time.Hour)
			account := "/accounts/" + platform + "/" + demo(t, platform).ID
			if r := b.control(http.MethodGet, account, "", http.StatusOK); r.text("data", "access_token") != second {
				t.Errorf("the control API shows %s, want the newest token", r.body)
			}
			third := b.control(http.MethodPut, account, "", http.StatusOK).text("data", "access_token")
			if r := b.call(http.MethodGet, me, third, "", ""); r.status != http.StatusOK {
				t.Errorf("PUT replaces a token that has ended for good: %d %s", r.status, r.body)
			}
		})
	}
}

func TestShortLongLivedTokens(t *testing.T) {
	b := start(t, "")
	token := b.control(http.MethodPut, "/accounts/threads/7", `{"token_ttl_s":60}`, http.StatusCreated).text("data", "access_token")
	refresh := func() reply {
		return b.call(http.MethodGet, "/threads/refresh_access_token?grant_type=th_refresh_token", token, "", "")
	}
	b.clock.Step(time.Second - time.Millisecond)
	if r := refresh(); r.status != http.StatusBadRequest {
		t.Errorf("a day of 60 is a second of a minute: %d %s", r.status, r.body)
	}
	b.clock.Step(time.Millisecond)
	if r := refresh(); r.status != http.StatusOK || r.at("expires_in") != 60.0 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestPageTokensDoNotEnd(t *testing.T) {
	b := start(t, "")
	b.clock.Step(5 * 365 * 24 * time.Hour)
	if r := b.read("facebook", "/facebook/v25.0/me"); r.status != http.StatusOK {
		t.Errorf("after five years: %d %s", r.status, r.body)
	}
	account := b.control(http.MethodGet, "/accounts/facebook/104000000000001", "", http.StatusOK)
	if account.at("data", "expires_at") != nil || account.at("data", "token_ttl_s") != nil || account.text("data", "refresh_token") != "" {
		t.Errorf("the control API shows an end: %s", account.body)
	}
	b.control(http.MethodPut, "/accounts/facebook/104000000000001", `{"token_ttl_s":30}`, http.StatusOK)
	b.clock.Step(30 * time.Second)
	if r := b.read("facebook", "/facebook/v25.0/me"); r.at("error", "error_subcode") != 463.0 {
		t.Errorf("a token that was given an end: %d %s", r.status, r.body)
	}
}

// tiktokRefresh exchanges a refresh token on TikTok.
func tiktokRefresh(b *box, token string) reply {
	b.t.Helper()
	return b.call(http.MethodPost, "/tiktok/v2/oauth/token/", "", formType,
		url.Values{"client_key": {"k"}, "client_secret": {"s"}, "grant_type": {"refresh_token"}, "refresh_token": {token}}.Encode())
}

func TestTikTokRotation(t *testing.T) {
	b := start(t, "")
	r := tiktokRefresh(b, "tiktok-refresh-demo")
	want := map[string]any{
		"access_token": r.text("access_token"), "refresh_token": r.text("refresh_token"), "expires_in": 7200.0,
		"refresh_expires_in": 180.0 * 24 * 3600, "open_id": demo(t, "tiktok").ID, "token_type": "Bearer",
		"scope": "user.info.basic,user.info.profile,video.publish,video.upload,video.list",
	}
	if diff := cmp.Diff(any(want), r.at()); diff != "" || r.text("refresh_token") == "tiktok-refresh-demo" {
		t.Errorf("%d (-want +got):\n%s", r.status, diff)
	}
	if r := tiktokRefresh(b, "tiktok-refresh-demo"); r.status != http.StatusBadRequest || r.text("error") != "invalid_grant" || r.text("log_id") == "" {
		t.Errorf("a used refresh token: %d %s", r.status, r.body)
	}
	b.clock.Step(180 * 24 * time.Hour)
	if r := tiktokRefresh(b, r.text("refresh_token")); r.text("error") != "invalid_grant" {
		t.Errorf("a refresh token of 180 days: %d %s", r.status, r.body)
	}
}

func TestGoogleKeepsTheRefreshToken(t *testing.T) {
	b := start(t, "")
	refresh := func() reply {
		return b.call(http.MethodPost, "/youtube/token", "", formType,
			"client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=youtube-refresh-demo")
	}
	for range 3 {
		r := refresh()
		want := map[string]any{
			"access_token": r.text("access_token"), "expires_in": 3600.0, "token_type": "Bearer",
			"scope": "https://www.googleapis.com/auth/youtube.upload https://www.googleapis.com/auth/youtube.readonly",
		}
		if diff := cmp.Diff(any(want), r.at()); diff != "" {
			t.Errorf("%d, no new refresh token comes (-want +got):\n%s", r.status, diff)
		}
		if r := b.call(http.MethodGet, "/youtube/youtube/v3/channels?part=id&mine=true", r.text("access_token"), "", ""); r.status != http.StatusOK {
			t.Errorf("the new access token: %d %s", r.status, r.body)
		}
		b.clock.Step(time.Hour)
	}
	if r := b.read("youtube", "/youtube/youtube/v3/channels?part=id&mine=true"); r.status != http.StatusUnauthorized || r.text("error", "errors", "0", "reason") != "authError" {
		t.Errorf("the first access token after hours: %d %s", r.status, r.body)
	}
}

func TestAccountsOnEveryPlatform(t *testing.T) {
	b := start(t, "")
	for _, tt := range identities {
		path := "/accounts/" + tt.platform + "/4711"
		if tt.platform == "tiktok" && tt.method == http.MethodPost {
			path += "2"
		}
		r := b.control(http.MethodPut, path, "", http.StatusCreated)
		token := r.text("data", "access_token")
		if r := b.call(tt.method, tt.path, token, tt.contentType, tt.body); r.status != http.StatusOK || tt.id != nil && r.text(tt.id...) != "4711" {
			t.Errorf("%s: the token of a new account: %d %s", tt.path, r.status, r.body)
		}
		again := b.control(http.MethodPut, path, "", http.StatusOK)
		if again.text("data", "access_token") != token {
			t.Errorf("%s: PUT gives another token to an account whose token works", tt.platform)
		}
	}
}

func TestIdentityRefusals(t *testing.T) {
	tests := []struct {
		name, platform, path string
		status               int
		at                   []string
		want                 any
	}{
		{"Threads: unknown field", "threads", "/threads/v1.0/me?fields=id,shoe_size", 400, []string{"error", "code"}, 100.0},
		{"Threads: broken fields", "threads", "/threads/v1.0/me?fields=id,,username", 400, []string{"error", "code"}, 2500.0},
		{"Threads: unknown parameter", "threads", "/threads/v1.0/me?field=id", 400, []string{"error", "type"}, "THApiException"},
		{"Threads: unknown version", "threads", "/threads/v2.0/me", 400, []string{"error", "code"}, 2500.0},
		{"Threads: unknown path", "threads", "/threads/v1.0/me/friends", 400, []string{"error", "code"}, 2500.0},
		{"Threads: unknown id", "threads", "/threads/v1.0/1", 400, []string{"error", "error_subcode"}, 33.0},
		{"Instagram: unknown field", "instagram", "/instagram/v25.0/me?fields=email", 400, []string{"error", "code"}, 100.0},
		{"Instagram: unknown version", "instagram", "/instagram/v27.0/me", 400, []string{"error", "code"}, 2500.0},
		{"Facebook: unknown field within one", "facebook", "/facebook/v25.0/me?fields=picture{size}", 400, []string{"error", "code"}, 100.0},
		{"Facebook: fields of what has none", "facebook", "/facebook/v25.0/me?fields=name{first}", 400, []string{"error", "code"}, 2500.0},
		{"Facebook: a brace that is not closed", "facebook", "/facebook/v25.0/me?fields=picture{url", 400, []string{"error", "code"}, 2500.0},
		{"TikTok: no fields", "tiktok", "/tiktok/v2/user/info/", 400, []string{"error", "code"}, "invalid_params"},
		{"TikTok: unknown field", "tiktok", "/tiktok/v2/user/info/?fields=open_id,email", 400, []string{"error", "code"}, "invalid_params"},
		{"TikTok: unknown parameter", "tiktok", "/tiktok/v2/user/info/?fields=open_id&lang=en", 400, []string{"error", "code"}, "invalid_params"},
		{"YouTube: no part", "youtube", "/youtube/youtube/v3/channels?mine=true", 400, []string{"error", "errors", "0", "reason"}, "missingRequiredParameter"},
		{"YouTube: unknown part", "youtube", "/youtube/youtube/v3/channels?part=snippets&mine=true", 400, []string{"error", "errors", "0", "reason"}, "unknownPart"},
		{"YouTube: no filter", "youtube", "/youtube/youtube/v3/channels?part=id", 400, []string{"error", "errors", "0", "reason"}, "missingRequiredParameter"},
		{"YouTube: unknown parameter", "youtube", "/youtube/youtube/v3/channels?parts=id&mine=true", 400, []string{"error", "status"}, "INVALID_ARGUMENT"},
		{"YouTube: unknown path", "youtube", "/youtube/v3/channels?part=id&mine=true", 404, []string{"error", "code"}, 404.0},
	}
	b := start(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := b.read(tt.platform, tt.path); r.status != tt.status || r.at(tt.at...) != tt.want {
				t.Errorf("%d %s, want %d with %v", r.status, r.body, tt.status, tt.want)
			}
		})
	}
}
