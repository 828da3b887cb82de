// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/sandbox"
)

func TestControlPosts(t *testing.T) {
	b := start(t, "")
	first := b.post("  one & <two> \n")
	b.clock.SetTime(time.Date(2026, 12, 1, 9, 0, 1, 0, time.UTC))
	second := b.tweet(replyBody("reply", first)).text("data", "id")
	post := func(id, text, parent, created string) any {
		return map[string]any{
			"id": id, "platform": "x", "account_id": demoID, "text": text, "title": "", "media": []any{}, "in_reply_to": parent,
			"url": b.http.URL + "/x/herald_demo/status/" + id, "privacy": "", "draft": false, "created_at": created,
		}
	}
	// The second post's time shows that milliseconds are always written.
	want := []any{post(first, "  one & <two> \n", "", "2026-12-01T09:00:00.123Z"), post(second, "reply", first, "2026-12-01T09:00:01.000Z")}
	for _, query := range []string{"", "?platform=x", "?platform=x&account=" + demoID, "?account=" + demoID} {
		same(t, "/posts"+query, want, b.control(http.MethodGet, "/posts"+query, "", http.StatusOK).list("data"))
	}
	b.control(http.MethodGet, "/posts?account=7", "", http.StatusOK).want(t, "an account without posts has an empty list", "data=[]")
}

func TestControlAccount(t *testing.T) {
	b := start(t, "")
	const path = "/accounts/x/77"
	b.control(http.MethodGet, path, "", http.StatusNotFound)
	created := b.control(http.MethodPut, path, `{"username":"seven","token_ttl_s":60,"quota":3}`, http.StatusCreated)
	token := created.text("data", "access_token")
	want := map[string]any{
		"platform": "x", "id": "77", "username": "seven", "display_name": "seven", "quota": 3.0, "private": false,
		"comment_disabled": false, "listing_lag_ms": nil, "token_ttl_s": 60.0, "processing_ms": nil, "processing_error": "",
		"access_token": token, "refresh_token": created.text("data", "refresh_token"),
		"expires_at": "2026-12-01T09:01:00.123Z", "url": b.http.URL + path,
		"scopes": []any{"tweet.read", "tweet.write", "users.read", "media.write", "offline.access"},
	}
	same(t, "the new account", want, created.at("data"))
	b.call(http.MethodGet, "/x/2/users/me", token, "", "").want(t, "its token works", "data.id=77")
	for _, tt := range []struct {
		why, settings string
		changes       map[string]any
	}{
		{
			"a change keeps other settings", `{"private":true,"comment_disabled":true,"listing_lag_ms":1500,"display_name":"Seven"}`,
			map[string]any{"private": true, "comment_disabled": true, "listing_lag_ms": 1500.0, "display_name": "Seven"},
		},
		{
			"slow processing that fails", `{"processing_ms":20,"processing_error":"UNKNOWN"}`,
			map[string]any{"processing_ms": 20.0, "processing_error": "UNKNOWN"},
		},
		{
			"null is the default, and existing tokens are not prolonged",
			`{"quota":null,"token_ttl_s":null,"processing_ms":null,"listing_lag_ms":null,"processing_error":null}`,
			map[string]any{"quota": nil, "token_ttl_s": 7200.0, "processing_ms": nil, "listing_lag_ms": nil, "processing_error": ""},
		},
	} {
		b.control(http.MethodPut, path, tt.settings, http.StatusOK)
		maps.Copy(want, tt.changes)
		same(t, tt.why, want, b.control(http.MethodGet, path, "", http.StatusOK).at("data"))
	}
}

func TestInvalidControlInput(t *testing.T) {
	b := start(t, "")
	refused := is{400, "error.code=*", "error.message=*"}
	// send sends "METHOD PATH BODY".
	send := func(request string) reply {
		parts := strings.SplitN(request, " ", 3)
		return b.call(parts[0], "/_control"+parts[1], "", jsonType, parts[2])
	}
	b.each(t, send, []row{
		{"an unknown kind", `POST /faults {"platform":"x","operation":"publish","kind":"explode"}`, refused},
		{"an unknown operation", `POST /faults {"platform":"x","operation":"delete","kind":"status"}`, refused},
		{"an unknown platform", `POST /faults {"platform":"y","operation":"publish","kind":"status"}`, refused},
		{"a fault that matches no request", `POST /faults {"platform":"x","operation":"publish","kind":"status","times":0}`, refused},
		{"a status out of range", `POST /faults {"platform":"x","operation":"publish","kind":"status","status":99}`, refused},
		{"a delay without a length", `POST /faults {"platform":"x","operation":"publish","kind":"delay"}`, refused},
		{"a stale list without a lag", `POST /faults {"platform":"x","operation":"list","kind":"stale_list"}`, refused},
		{"a slow response without a delay", `POST /faults {"platform":"x","operation":"publish","kind":"slow_answer"}`, refused},
		{"a stale list of another operation", `POST /faults {"platform":"x","operation":"publish","kind":"stale_list","delay_ms":1}`, refused},
		{"a negative delay", `POST /faults {"platform":"x","operation":"publish","kind":"delay","delay_ms":-1}`, refused},
		{"a misspelt field", `POST /faults {"platform":"x","operation":"publish","kind":"delay","delay":1}`, refused},
		{"invalid JSON", `POST /faults {`, refused},
		{"two values", `POST /faults {"platform":"x","operation":"*","kind":"status"} {}`, refused},
		{"posts of an unknown platform", `GET /posts?platform=y `, refused},
		{"an X ID that is not a number", `PUT /accounts/x/abc {}`, refused},
		{"a username that X does not allow", `PUT /accounts/x/5 {"username":"much too long a name"}`, refused},
		{"another account's username", `PUT /accounts/x/5 {"username":"HERALD_demo"}`, refused},
		{"a new username for an existing account", `PUT /accounts/x/` + demoID + ` {"username":"other"}`, refused},
		{"a negative quota", `PUT /accounts/x/5 {"quota":-1}`, refused},
		{"a lag of years", `PUT /accounts/x/5 {"listing_lag_ms":99999999999}`, refused},
		{"a token without a lifetime", `PUT /accounts/x/5 {"token_ttl_s":0}`, refused},
		{"a negative processing time", `PUT /accounts/x/5 {"processing_ms":-1}`, refused},
		{"letters in a Threads ID", `PUT /accounts/threads/me {}`, refused},
		{"letters in an Instagram ID", `PUT /accounts/instagram/me {}`, refused},
		{"letters in a Page's ID", `PUT /accounts/facebook/me {}`, refused},
		{"spaces in an open_id", `PUT /accounts/tiktok/a%20b {}`, refused},
		{"spaces in a channel ID", `PUT /accounts/youtube/a%20b {}`, refused},
		{"a username that Facebook does not allow", `PUT /accounts/facebook/5 {"username":"a_b"}`, refused},
		{"a username that Threads does not allow", `PUT /accounts/threads/5 {"username":"a-b"}`, refused},
		{"an account of an unknown platform", `PUT /accounts/y/5 {}`, refused},
		{"an unknown login", `PUT /accounts/instagram/5 {"login":"google"}`, refused},
		{"a login of a platform that has one only", `PUT /accounts/threads/5 {"login":"facebook"}`, refused},
		{"another login for an existing account", `PUT /accounts/instagram/` + instagramID + ` {"login":"facebook"}`, refused},
		{"a wrong method", `PUT /faults {}`, is{405, "error.code=*", "error.message=*"}},
		{"an unknown path", `GET /nothing `, is{404, "error.code=*", "error.message=*"}},
	})
	b.control(http.MethodGet, "/accounts/x/5", "", http.StatusNotFound) // rejected requests create nothing
	b.transfer(http.MethodPost, b.http.URL+"/_control/reset", http.NoBody, "Sec-Fetch-Site: cross-site").
		want(t, "a page of another site may not control the sandbox", 403)
}

func TestReset(t *testing.T) {
	b := start(t, "")
	access := b.refresh("x-refresh-demo").text("access_token")
	b.post("gone")
	b.set("x", `{"quota":1,"private":true}`)
	b.fault(`{"platform":"x","operation":"*","kind":"status"}`)
	b.control(http.MethodPost, "/reset", "", http.StatusNoContent)
	same(t, "posts", 0, len(b.texts()))
	same(t, "calls", 0, b.callsOn("x", "publish")+b.callsOn("x", "refresh_token"))
	b.call(http.MethodGet, "/x/2/users/me", access, "", "").want(t, "accounts stay connected, and faults end", 200)
	b.post("gone") // neither a duplicate nor over the quota
	b.post("more")
}

func TestDemoAccounts(t *testing.T) {
	b := start(t, "")
	for _, a := range sandbox.DemoAccounts() {
		b.control(http.MethodGet, "/accounts/"+a.Platform+"/"+a.ID, "", 200).want(t, a.Platform, "data.access_token="+a.AccessToken,
			"data.refresh_token="+a.RefreshToken, "data.username="+a.Username, "data.display_name="+a.DisplayName)
	}
}
