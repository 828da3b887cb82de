// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/sandbox"
)

func TestControlPosts(t *testing.T) {
	b := start(t, "")
	first := b.post("  one & <two> \n")
	b.clock.Step(time.Second)
	r := b.tweet(`{"text":"reply","reply":{"in_reply_to_tweet_id":"` + first + `"}}`)
	second := r.text("data", "id")
	want := []any{
		map[string]any{
			"id": first, "platform": "x", "account_id": demoID, "text": "  one & <two> \n", "title": "", "media": []any{},
			"in_reply_to": "", "url": b.http.URL + "/x/herald_demo/status/" + first, "privacy": "", "draft": false,
			"created_at": "2026-12-01T09:00:00.123Z",
		},
		map[string]any{
			"id": second, "platform": "x", "account_id": demoID, "text": "reply", "title": "", "media": []any{},
			"in_reply_to": first, "url": b.http.URL + "/x/herald_demo/status/" + second, "privacy": "", "draft": false,
			"created_at": "2026-12-01T09:00:01.123Z",
		},
	}
	for _, query := range []string{"", "?platform=x", "?platform=x&account=" + demoID, "?account=" + demoID} {
		got := b.control(http.MethodGet, "/posts"+query, "", http.StatusOK).list("data")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("/posts%s (-want +got):\n%s", query, diff)
		}
	}
	if got := b.control(http.MethodGet, "/posts?account=7", "", http.StatusOK).list("data"); got == nil || len(got) != 0 {
		t.Errorf("an account without posts has %v, want an empty list", got)
	}
}

func TestControlAccount(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodGet, "/accounts/x/77", "", http.StatusNotFound)
	created := b.control(http.MethodPut, "/accounts/x/77", `{"username":"seven","token_ttl_s":60,"quota":3}`, http.StatusCreated)
	want := map[string]any{
		"platform": "x", "id": "77", "username": "seven", "display_name": "seven", "quota": 3.0, "private": false,
		"comment_disabled": false, "listing_lag_ms": nil, "token_ttl_s": 60.0, "processing_ms": nil, "processing_error": "",
		"access_token": created.text("data", "access_token"), "refresh_token": created.text("data", "refresh_token"),
		"expires_at": "2026-12-01T09:01:00.123Z", "url": b.http.URL + "/accounts/x/77",
		"scopes": []any{"tweet.read", "tweet.write", "users.read", "media.write", "offline.access"},
	}
	if diff := cmp.Diff(any(want), created.at("data")); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	token := created.text("data", "access_token")
	if r := b.call(http.MethodGet, "/x/2/users/me", token, "", ""); r.text("data", "id") != "77" {
		t.Errorf("the token of the answer does not work: %d %s", r.status, r.body)
	}
	b.control(http.MethodPut, "/accounts/x/77", `{"private":true,"comment_disabled":true,"listing_lag_ms":1500,"display_name":"Seven"}`,
		http.StatusOK)
	want["private"], want["comment_disabled"], want["listing_lag_ms"], want["display_name"] = true, true, 1500.0, "Seven"
	if diff := cmp.Diff(any(want), b.control(http.MethodGet, "/accounts/x/77", "", http.StatusOK).at("data")); diff != "" {
		t.Errorf("changed, the rest kept (-want +got):\n%s", diff)
	}
	b.control(http.MethodPut, "/accounts/x/77", `{"processing_ms":20,"processing_error":"UNKNOWN"}`, http.StatusOK)
	want["processing_ms"], want["processing_error"] = 20.0, "UNKNOWN"
	if diff := cmp.Diff(any(want), b.control(http.MethodGet, "/accounts/x/77", "", http.StatusOK).at("data")); diff != "" {
		t.Errorf("what makes processing slow or fail (-want +got):\n%s", diff)
	}
	b.control(http.MethodPut, "/accounts/x/77", `{"quota":null,"token_ttl_s":null,"processing_ms":null,"listing_lag_ms":null,"processing_error":null}`, http.StatusOK)
	want["quota"], want["token_ttl_s"], want["processing_ms"], want["listing_lag_ms"], want["processing_error"] = nil, 7200.0, nil, nil, ""
	if diff := cmp.Diff(any(want), b.control(http.MethodGet, "/accounts/x/77", "", http.StatusOK).at("data")); diff != "" {
		t.Errorf("null is the default, and running tokens are not prolonged (-want +got):\n%s", diff)
	}
}

func TestTokenTTLShortensRunningTokens(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"token_ttl_s":5}`, http.StatusOK)
	b.clock.Step(5 * time.Second)
	if r := b.get("/x/2/users/me"); r.status != http.StatusUnauthorized {
		t.Errorf("status %d at the end of the shortened time, want 401", r.status)
	}
	if r := b.refresh("x-refresh-demo"); r.at("expires_in") != 5.0 {
		t.Errorf("a new token lives %v s, want 5", r.at("expires_in"))
	}
}

func TestBadControlInput(t *testing.T) {
	tests := []struct {
		name, method, path, body string
		want                     int
	}{
		{"unknown kind", "POST", "/faults", `{"platform":"x","operation":"publish","kind":"explode"}`, 400},
		{"unknown operation", "POST", "/faults", `{"platform":"x","operation":"delete","kind":"status"}`, 400},
		{"unknown platform", "POST", "/faults", `{"platform":"y","operation":"publish","kind":"status"}`, 400},
		{"no times at all", "POST", "/faults", `{"platform":"x","operation":"publish","kind":"status","times":0}`, 400},
		{"status out of range", "POST", "/faults", `{"platform":"x","operation":"publish","kind":"status","status":99}`, 400},
		{"delay of nothing", "POST", "/faults", `{"platform":"x","operation":"publish","kind":"delay"}`, 400},
		{"stale list without a lag", "POST", "/faults", `{"platform":"x","operation":"list","kind":"stale_list"}`, 400},
		{"stale list elsewhere", "POST", "/faults", `{"platform":"x","operation":"publish","kind":"stale_list","delay_ms":1}`, 400},
		{"negative delay", "POST", "/faults", `{"platform":"x","operation":"publish","kind":"delay","delay_ms":-1}`, 400},
		{"misspelt field", "POST", "/faults", `{"platform":"x","operation":"publish","kind":"delay","delay":1}`, 400},
		{"not JSON", "POST", "/faults", `{`, 400},
		{"two values", "POST", "/faults", `{"platform":"x","operation":"*","kind":"status"} {}`, 400},
		{"posts of an unknown platform", "GET", "/posts?platform=y", ``, 400},
		{"id that is no number", "PUT", "/accounts/x/abc", `{}`, 400},
		{"username that X would not allow", "PUT", "/accounts/x/5", `{"username":"much too long a name"}`, 400},
		{"username of another", "PUT", "/accounts/x/5", `{"username":"HERALD_demo"}`, 400},
		{"renaming", "PUT", "/accounts/x/" + demoID, `{"username":"other"}`, 400},
		{"negative quota", "PUT", "/accounts/x/5", `{"quota":-1}`, 400},
		{"endless lag", "PUT", "/accounts/x/5", `{"listing_lag_ms":99999999999}`, 400},
		{"token life of nothing", "PUT", "/accounts/x/5", `{"token_ttl_s":0}`, 400},
		{"processing that ends before it begins", "PUT", "/accounts/x/5", `{"processing_ms":-1}`, 400},
		{"letters in a Threads id", "PUT", "/accounts/threads/me", `{}`, 400},
		{"letters in an Instagram id", "PUT", "/accounts/instagram/me", `{}`, 400},
		{"letters in a Page's id", "PUT", "/accounts/facebook/me", `{}`, 400},
		{"blanks in an open_id", "PUT", "/accounts/tiktok/a%20b", `{}`, 400},
		{"blanks in a channel id", "PUT", "/accounts/youtube/a%20b", `{}`, 400},
		{"username that Facebook would not allow", "PUT", "/accounts/facebook/5", `{"username":"a_b"}`, 400},
		{"username that Threads would not allow", "PUT", "/accounts/threads/5", `{"username":"a-b"}`, 400},
		{"account of an unknown platform", "PUT", "/accounts/y/5", `{}`, 400},
		{"wrong method", "PUT", "/faults", `{}`, 405},
		{"unknown path", "GET", "/nothing", ``, 404},
	}
	b := start(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(tt.method, "/_control"+tt.path, "", "application/json", tt.body)
			if r.status != tt.want || r.text("error", "code") == "" || r.text("error", "message") == "" {
				t.Errorf("%d %s, want %d with a code and a message", r.status, r.body, tt.want)
			}
		})
	}
	b.control(http.MethodGet, "/accounts/x/5", "", http.StatusNotFound) // refused requests create nothing
}

func TestControlRefusesOtherSites(t *testing.T) {
	b := start(t, "")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.http.URL+"/_control/reset", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d to a page of another site, want 403", resp.StatusCode)
	}
}

func TestReset(t *testing.T) {
	b := start(t, "")
	access := b.refresh("x-refresh-demo").text("access_token")
	b.post("gone")
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"quota":1,"private":true}`, http.StatusOK)
	b.fault(`{"platform":"x","operation":"*","kind":"status"}`)
	b.control(http.MethodPost, "/reset", "", http.StatusNoContent)
	if got := b.texts(); len(got) != 0 {
		t.Errorf("posts %q left", got)
	}
	if n := b.calls("publish") + b.calls("refresh_token"); n != 0 {
		t.Errorf("%d calls left", n)
	}
	if r := b.call(http.MethodGet, "/x/2/users/me", access, "", ""); r.status != http.StatusOK {
		t.Errorf("status %d: a connected account must stay connected, and no fault stay", r.status)
	}
	b.post("gone") // neither a duplicate nor over the quota
	b.post("more")
}

func TestDemoAccounts(t *testing.T) {
	b := start(t, "")
	for _, a := range sandbox.DemoAccounts() {
		r := b.control(http.MethodGet, "/accounts/"+a.Platform+"/"+a.ID, "", http.StatusOK)
		got := []string{r.text("data", "access_token"), r.text("data", "refresh_token"), r.text("data", "username"), r.text("data", "display_name")}
		if diff := cmp.Diff([]string{a.AccessToken, a.RefreshToken, a.Username, a.DisplayName}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", a.Platform, diff)
		}
	}
}

func TestTimestampsHaveMilliseconds(t *testing.T) {
	b := start(t, "")
	b.clock.SetTime(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	b.post("on the second")
	r := b.control(http.MethodGet, "/posts", "", http.StatusOK)
	if !regexp.MustCompile(`"created_at":"2026-12-01T09:00:00\.000Z"`).MatchString(r.body) {
		t.Errorf("no milliseconds in %s", r.body)
	}
}
