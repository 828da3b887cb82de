// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// identities are the identity requests for each platform's demo account, as documented.
var identities = []struct {
	platform, method, path, contentType, body string
	// id is the response path of the account's ID.
	id string
}{
	{"x", "GET", "/x/2/users/me", "", "", "data.id"},
	{"threads", "GET", "/threads/v1.0/me?fields=id,username,name,threads_profile_picture_url,is_verified", "", "", "id"},
	{"instagram", "GET", "/instagram/v25.0/me?fields=user_id,username,name,profile_picture_url,account_type", "", "", "user_id"},
	{"facebook", "GET", "/facebook/v25.0/me?fields=id,name,username,picture{url}", "", "", "id"},
	{"tiktok", "GET", "/tiktok/v2/user/info/?fields=open_id,avatar_url,display_name,username", "", "", "data.user.open_id"},
	{"tiktok", "POST", "/tiktok/v2/post/publish/creator_info/query/", jsonUTF8, "{}", ""},
	{"youtube", "GET", "/youtube/youtube/v3/channels?part=snippet,contentDetails&mine=true", "", "", "items.0.id"},
	{"mastodon", "GET", "/mastodon/api/v1/accounts/verify_credentials", "", "", "id"},
	{"bluesky", "GET", "/bluesky/xrpc/com.atproto.server.getSession", "", "", "did"},
}

// numbered returns an account id that contains a number, in a platform's format. On Bluesky, ids contain only the
// digits 2 to 7.
func numbered(platform, number string) string {
	if platform != "bluesky" {
		return number
	}
	const length = 24
	return "did:plc:" + strings.Repeat("z", length-len(number)) + strings.NewReplacer("0", "a", "1", "b", "8", "c", "9", "d").Replace(number)
}

// identify sends the i-th identity request with a token.
func (b *box) identify(i int, token string) reply {
	b.t.Helper()
	return b.call(identities[i].method, identities[i].path, token, identities[i].contentType, identities[i].body)
}

func TestIdentityResponses(t *testing.T) {
	b := start(t, "")
	picture := func(platform string) string {
		return b.http.URL + "/_assets/avatar/" + platform + "/" + demo(t, platform).ID + ".svg"
	}
	for _, tt := range []struct {
		platform, path string
		at             []string
		want           any
	}{
		{"threads", "/threads/v1.0/me", nil, map[string]any{"id": threadsID}},
		{"threads", "/threads/v1.0/" + threadsID + "?fields=id,username,name,threads_profile_picture_url,is_verified", nil, map[string]any{
			"id": threadsID, "username": "herald_demo", "name": "Herald Demo", "is_verified": false,
			"threads_profile_picture_url": picture("threads"),
		}},
		{"instagram", "/instagram/v26.0/me?fields=user_id,username,account_type,profile_picture_url", nil, map[string]any{
			// The app-scoped ID differs from the ID in paths.
			"id": "12168631381883363", "user_id": instagramID, "username": "herald_demo", "account_type": "BUSINESS",
			"profile_picture_url": picture("instagram"),
		}},
		{"facebook", "/facebook/v26.0/me", nil, map[string]any{"id": pageID, "name": "Herald Demo"}},
		{"facebook", "/facebook/v25.0/me?fields=username,picture{url}", nil, map[string]any{
			"id": pageID, "username": "herald.demo", "picture": map[string]any{"data": map[string]any{"url": picture("facebook")}},
		}},
		{"tiktok", "/tiktok/v2/user/info/?fields=open_id,display_name,username,avatar_url", []string{"data", "user"}, map[string]any{
			"open_id": tiktokID, "display_name": "Herald Demo", "username": "herald_demo", "avatar_url": picture("tiktok"),
		}},
		{"youtube", "/youtube/youtube/v3/channels?part=contentDetails&mine=true", []string{"items", "0", "contentDetails"}, map[string]any{
			"relatedPlaylists": map[string]any{"likes": "", "uploads": "UUHeraldDemo000000000001"},
		}},
		{"youtube", "/youtube/youtube/v3/channels?part=snippet&part=id&mine=true", []string{"items", "0", "snippet", "customUrl"}, "@herald_demo"},
	} {
		same(t, tt.path, tt.want, b.read(tt.platform, tt.path).want(t, tt.path, 200).at(tt.at...))
	}
}

func TestCreatorInfo(t *testing.T) {
	b := start(t, "")
	ask := func() reply {
		return b.as("tiktok", http.MethodPost, tiktokPublish+"creator_info/query/", jsonType, "").want(t, "the envelope", 200, "error.log_id=*")
	}
	want := map[string]any{
		"creator_avatar_url": b.http.URL + "/_assets/avatar/tiktok/" + tiktokID + ".svg",
		"creator_username":   "herald_demo", "creator_nickname": "Herald Demo",
		"privacy_level_options": []any{"PUBLIC_TO_EVERYONE", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"},
		"comment_disabled":      false, "duet_disabled": false, "stitch_disabled": false, "max_video_post_duration_sec": 600.0,
	}
	same(t, "a public account", want, ask().want(t, "no error", "error.code=ok").at("data"))
	b.set("tiktok", `{"private":true,"comment_disabled":true}`)
	want["privacy_level_options"] = []any{"FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"}
	want["comment_disabled"], want["duet_disabled"], want["stitch_disabled"] = true, true, true
	same(t, "a private account without comments", want, ask().at("data"))
	b.set("tiktok", `{"quota":0}`)
	ask().want(t, "a used quota is an error within a 200", "error.code=spam_risk_too_many_posts")
}

func TestRefreshRefusals(t *testing.T) {
	b := start(t, "")
	threads := func(query string) reply { return b.page("/threads/refresh_access_token?" + query) }
	b.each(t, threads, []row{
		{"a token of less than a day", "grant_type=th_refresh_token&access_token=threads-access-demo", graphError(100, "")},
		{"Instagram's grant on Threads", "grant_type=ig_refresh_token&access_token=threads-access-demo", graphError(100, "")},
		{"no grant on Threads", "access_token=threads-access-demo", graphError(100, "")},
		{"no token on Threads", "grant_type=th_refresh_token", graphError(104, "")},
		{"Instagram's token on Threads", "grant_type=th_refresh_token&access_token=instagram-access-demo", graphError(190, "")},
		{"a client on Threads", "grant_type=th_refresh_token&client_id=1&access_token=threads-access-demo", graphError(100, "")},
	})
	form := func(path string) func(string) reply {
		return func(body string) reply { return b.call(http.MethodPost, path, "", formType, body) }
	}
	form("/threads/refresh_access_token")("grant_type=th_refresh_token&access_token=threads-access-demo").
		want(t, "Threads refreshes by GET", graphError(2500, "")...)
	b.page("/facebook/refresh_access_token?grant_type=fb_refresh_token&access_token=facebook-access-demo").want(t, "Facebook has no refresh", 404)
	invalid, grant := is{400, "error=invalid_request"}, is{400, "error=invalid_grant"}
	const tiktok = "client_key=c&client_secret=s&grant_type=refresh_token"
	b.each(t, form("/tiktok/v2/oauth/token/"), []row{
		{
			"TikTok calls the client client_key", "client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=tiktok-refresh-demo",
			is{401, "error=invalid_client"},
		},
		{"TikTok needs a secret", "client_key=c&grant_type=refresh_token&refresh_token=tiktok-refresh-demo", is{401, "error=invalid_client"}},
		{"TikTok needs a refresh token", tiktok, invalid},
		{"an access token on TikTok", tiktok + "&refresh_token=tiktok-access-demo", grant},
		{"Google's token on TikTok", tiktok + "&refresh_token=youtube-refresh-demo", grant},
	})
	form("/tiktok/v2/oauth/token")("client_key=c").want(t, "TikTok's path ends with a slash", 404, "error.code=invalid_params")
	b.each(t, form("/youtube/token"), []row{
		{"Google needs a client", "client_secret=s&grant_type=refresh_token&refresh_token=youtube-refresh-demo", invalid},
		{"Google needs a secret", "client_id=c&grant_type=refresh_token&refresh_token=youtube-refresh-demo", invalid},
		{
			"another grant on Google", "client_id=c&client_secret=s&grant_type=password&refresh_token=youtube-refresh-demo",
			is{400, "error=unsupported_grant_type"},
		},
		{"an unknown token on Google", "client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=x", grant},
	})
	for _, path := range []string{"/tiktok/v2/oauth/token/", "/youtube/token"} {
		b.call(http.MethodPost, path, "", jsonType, `{"client_key":"c"}`).want(t, path+" takes no JSON", invalid...)
	}
}

func TestLongLivedTokens(t *testing.T) {
	for platform, grant := range map[string]string{"threads": "th_refresh_token", "instagram": "ig_refresh_token"} {
		t.Run(platform, func(t *testing.T) {
			b := start(t, "")
			account, first := "/accounts/"+platform+"/"+demo(t, platform).ID, demo(t, platform).AccessToken
			path := map[string]string{"threads": "/threads/v1.0/me", "instagram": "/instagram/v25.0/me"}[platform]
			me := func(token string) reply { return b.call(http.MethodGet, path, token, "", "") }
			refresh := func(token string) reply {
				return b.page("/" + platform + "/refresh_access_token?grant_type=" + grant + "&access_token=" + token)
			}
			b.clock.Step(24*time.Hour - time.Second)
			refresh(first).want(t, "a token of less than a day", 400, "~24h")
			b.clock.Step(time.Second)
			second := refresh(first).want(t, "a token of a day", 200, "expires_in=5184000", "token_type=bearer").text("access_token")
			refresh(second).want(t, "the new token is less than a day old", 400)
			b.clock.Step(59 * 24 * time.Hour)
			me(first).want(t, "the first token after 60 days", "error.code=190", "error.error_subcode=463")
			refresh(first).want(t, "an expired token cannot be refreshed", "error.code=190")
			me(second).want(t, "the second token has a day left", 200)
			b.clock.Step(24 * time.Hour)
			b.control(http.MethodGet, account, "", 200).want(t, "the control API returns the newest token", "data.access_token="+second)
			third := b.control(http.MethodPut, account, "", http.StatusOK).text("data", "access_token")
			me(third).want(t, "PUT replaces an expired token", 200)
		})
	}
}

func TestTokensWithOtherLifetimes(t *testing.T) {
	b := start(t, "")
	short := b.account("threads", "7", `{"token_ttl_s":60}`)
	refresh := func() reply {
		return b.call(http.MethodGet, "/threads/refresh_access_token?grant_type=th_refresh_token", short, "", "")
	}
	b.clock.Step(time.Second - time.Millisecond)
	refresh().want(t, "the minimum age shrinks with the lifetime: a second of a minute", 400)
	b.clock.Step(time.Millisecond)
	refresh().want(t, "a token of a second", 200, "expires_in=60")
	b.set("x", `{"token_ttl_s":5}`)
	b.clock.Step(5 * time.Second)
	b.get("/x/2/users/me").want(t, "a shortened lifetime applies to existing tokens", 401)
	b.refresh("x-refresh-demo").want(t, "and to new ones", "expires_in=5")
	b.clock.Step(5 * 365 * 24 * time.Hour)
	b.read("facebook", "/facebook/v25.0/me").want(t, "a Page's token does not expire", 200)
	b.control(http.MethodGet, "/accounts/facebook/"+pageID, "", http.StatusOK).
		want(t, "the control API shows no end", "data.expires_at=", "data.token_ttl_s=", "data.refresh_token=")
	b.set("facebook", `{"token_ttl_s":30}`)
	b.clock.Step(30 * time.Second)
	b.read("facebook", "/facebook/v25.0/me").want(t, "a Page's token with a lifetime expires", "error.error_subcode=463")
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
	same(t, "a refresh", map[string]any{
		"access_token": r.text("access_token"), "refresh_token": r.text("refresh_token"), "expires_in": 7200.0,
		"refresh_expires_in": 180.0 * 24 * 3600, "open_id": tiktokID, "token_type": "Bearer",
		"scope": "user.info.basic,user.info.profile,video.publish,video.upload,video.list",
	}, r.at())
	tiktokRefresh(b, "tiktok-refresh-demo").want(t, "a refresh token that is used up", 400, "error=invalid_grant", "log_id=*")
	b.clock.Step(180 * 24 * time.Hour)
	tiktokRefresh(b, r.text("refresh_token")).want(t, "a refresh token after 180 days", "error=invalid_grant")
}

func TestGoogleReturnsNoNewRefreshToken(t *testing.T) {
	b := start(t, "")
	const channels = "/youtube/youtube/v3/channels?part=id&mine=true"
	for range 3 {
		r := b.call(http.MethodPost, "/youtube/token", "", formType,
			"client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=youtube-refresh-demo")
		same(t, "a refresh returns no new refresh token", map[string]any{
			"access_token": r.text("access_token"), "expires_in": 3600.0, "token_type": "Bearer",
			"scope": "https://www.googleapis.com/auth/youtube.upload https://www.googleapis.com/auth/youtube.readonly",
		}, r.at())
		b.call(http.MethodGet, channels, r.text("access_token"), "", "").want(t, "the new access token", 200)
		b.clock.Step(time.Hour)
	}
	b.read("youtube", channels).want(t, "the first access token after hours", youtubeError(401, "authError")...)
}

func TestAccountsOnEveryPlatform(t *testing.T) {
	b := start(t, "")
	for i, tt := range identities {
		own := b.identify(i, b.bearer(tt.platform, demo(t, tt.platform).AccessToken)).want(t, tt.path, 200)
		id := numbered(tt.platform, fmt.Sprint("471", i))
		path := "/accounts/" + tt.platform + "/" + id
		token := b.control(http.MethodPut, path, "", http.StatusCreated).text("data", "access_token")
		other := b.identify(i, b.bearer(tt.platform, token)).want(t, tt.path+" with the token of a new account", 200)
		if tt.id != "" {
			own.want(t, tt.path, tt.id+"="+demo(t, tt.platform).ID)
			other.want(t, tt.path+" with the token of a new account", tt.id+"="+id)
		}
		b.control(http.MethodPut, path, "", 200).want(t, path+" keeps a token that works", "data.access_token="+token)
	}
}

func TestIdentityRefusals(t *testing.T) {
	b := start(t, "")
	get := func(path string) reply {
		platform, _, _ := strings.Cut(path[1:], "/")
		return b.read(platform, path)
	}
	invalid := tiktokError(400, "invalid_params")
	b.each(t, get, []row{
		{"an unknown field on Threads", "/threads/v1.0/me?fields=id,shoe_size", graphError(100, "")},
		{"an empty field name", "/threads/v1.0/me?fields=id,,username", graphError(2500, "")},
		{"Threads has its own error type", "/threads/v1.0/me?field=id", is{400, "error.type=THApiException"}},
		{"an unknown version of Threads", "/threads/v2.0/me", graphError(2500, "")},
		{"an unknown edge", "/threads/v1.0/me/friends", graphError(2500, "")},
		{"an unknown node", "/threads/v1.0/1", missing},
		{"an unknown field on Instagram", "/instagram/v25.0/me?fields=email", graphError(100, "")},
		{"an unknown version of Instagram", "/instagram/v27.0/me", graphError(2500, "")},
		{"an unknown field within a field", "/facebook/v25.0/me?fields=picture{size}", graphError(100, "")},
		{"fields within a plain value", "/facebook/v25.0/me?fields=name{first}", graphError(2500, "")},
		{"a brace without its end", "/facebook/v25.0/me?fields=picture{url", graphError(2500, "")},
		{"TikTok needs fields", "/tiktok/v2/user/info/", invalid},
		{"an unknown field on TikTok", "/tiktok/v2/user/info/?fields=open_id,email", invalid},
		{"an unknown parameter on TikTok", "/tiktok/v2/user/info/?fields=open_id&lang=en", invalid},
		{"YouTube needs a part", "/youtube/youtube/v3/channels?mine=true", youtubeError(400, "missingRequiredParameter")},
		{"an unknown part on YouTube", "/youtube/youtube/v3/channels?part=snippets&mine=true", youtubeError(400, "unknownPart")},
		{"YouTube needs a filter", "/youtube/youtube/v3/channels?part=id", youtubeError(400, "missingRequiredParameter")},
		{"an unknown parameter on YouTube", "/youtube/youtube/v3/channels?parts=id&mine=true", is{400, "error.status=INVALID_ARGUMENT"}},
		{"an unknown path on YouTube", "/youtube/v3/channels?part=id&mine=true", is{404, "error.code=404"}},
	})
}
