// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

func TestIdentify(t *testing.T) {
	account := platforms.Identity{AccountID: "42", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"}
	numbered := platforms.Identity{AccountID: "17841400000000001", DisplayName: "acme", Username: "acme"}
	whole := `{"id":"999","user_id":"42","username":"acme","name":"Acme","profile_picture_url":"https://cdn.example/a","account_type":"BUSINESS"}`
	platformtest.Identify(t, newInstagram, "/v25.0/me?fields=user_id,username,name,profile_picture_url,account_type",
		identifies("account", "the professional account's id counts, not the app's own for it", says(200, whole), account),
		identifies("in a list", "some of Instagram's pages show it so; an id may come as a number",
			says(200, `{"data":[{"user_id":17841400000000001,"username":"acme"}]}`), numbered),
		refuses("dead token", "nothing renews a dead token", problem(400, 190, 463), platforms.ClassReconnect),
		refuses("permission", "a person must grant it", problem(403, 10, 0), platforms.ClassReconnect),
		refuses("checkpoint", "a person must act on Instagram", problem(400, 100, 1404006), platforms.ClassRestricted),
		refuses("limited", "a limit passes", problem(400, 4, 0), platforms.ClassRateLimited),
		refuses("blocked", "so does a block", problem(400, 4, 2207051), platforms.ClassQuota),
		refuses("bad request", "a refusal of the request says nothing about the account", problem(400, 100, 0), platforms.ClassUnknown),
		refuses("app's own id", "the id for this app alone is not the account's", says(200, `{"id":"999"}`), platforms.ClassUnknown),
		refuses("several in one", "one token is for one account", says(200, `{"data":[{"user_id":"1"},{"user_id":"2"}]}`), platforms.ClassUnknown))
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Scopes: "instagram_business_basic", ExpiresAt: noon}
	asked := recorder.Request{Method: http.MethodGet, Path: "/refresh_access_token", Query: url.Values{
		"grant_type": {"ig_refresh_token"}, "access_token": {"a1"},
	}}
	platformtest.Renew(t, newInstagram, old, asked,
		renews("renewed", "the new token lives as long as Instagram says",
			says(200, `{"access_token":"a2","token_type":"bearer","expires_in":5184000}`),
			platforms.Token{Access: "a2", Scopes: "instagram_business_basic", ExpiresAt: noon.Add(60 * 24 * time.Hour)}),
		renews("left-over refresh token", "an access token renews itself, whatever else is stored", says(200, `{"access_token":"a2"}`),
			platforms.Token{Access: "a2", Refresh: "r1"}).Of(platforms.Token{Access: "a1", Refresh: "r1"}),
		refuses("dead", "a dead token needs a person", problem(400, 190, 463), platforms.ClassReconnect),
		refuses("too young", "a token that may not be renewed yet is good", problem(400, 100, 0), platforms.ClassTransient))
}

func TestIdentifyLinked(t *testing.T) {
	account := `{"id":"17841400000000002","username":"acme","name":"Acme","profile_picture_url":"https://cdn.example/a"}`
	page := `{"id":"1","name":"Acme's Page","instagram_business_account":` + account + `}`
	other := `{"id":"2","name":"Another","instagram_business_account":{"id":"17841400000000003","username":"other"}}`
	want := platforms.Identity{AccountID: "17841400000000002", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"}
	me, pages := "GET /facebook/v25.0/me", "GET /facebook/v25.0/me/accounts"
	noField := problem(400, 100, 0)
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   platforms.Identity
		class  platforms.Class
		asked  []string
	}{
		"a Page's token":         {"it is asked for its Page", says(200, page), want, "", []string{me}},
		"a person's token":       {"persons have no account themselves, but Pages", inTurn(answers{noField, says(200, `{"data":[`+page+`,{"id":"3","name":"Bare"}]}`)}), want, "", []string{me, pages}},
		"a person's, no refusal": {"what a person lacks may just be left out", inTurn(answers{says(200, `{"id":"9","name":"A Person"}`), says(200, `{"data":[`+page+`]}`)}), want, "", []string{me, pages}},
		"several":                {"one token is for one account", inTurn(answers{noField, says(200, `{"data":[`+page+`,`+other+`]}`)}), platforms.Identity{}, platforms.ClassReconnect, []string{me, pages}},
		"none linked":            {"a person must link one", inTurn(answers{says(200, `{"id":"1","name":"A Page"}`), noField}), platforms.Identity{}, platforms.ClassReconnect, []string{me, pages}},
		"no Page":                {"the same", inTurn(answers{noField, says(200, `{"data":[]}`)}), platforms.Identity{}, platforms.ClassReconnect, []string{me, pages}},
		"no list":                {"an answer without a list tells nothing", inTurn(answers{noField, says(200, `{}`)}), platforms.Identity{}, platforms.ClassUnknown, []string{me, pages}},
		"refused twice":          {"nor do refusals of the request", noField, platforms.Identity{}, platforms.ClassUnknown, []string{me, pages}},
		"odd id":                 {"nor an id that is none", says(200, `{"instagram_business_account":{"id":"../me"}}`), platforms.Identity{}, platforms.ClassUnknown, []string{me}},
		"dead token":             {"a person must connect again", problem(400, 190, 463), platforms.Identity{}, platforms.ClassReconnect, []string{me}},
		"permission":             {"a person must grant it", problem(403, 10, 0), platforms.Identity{}, platforms.ClassReconnect, []string{me}},
		"outage":                 {"an outage passes", says(500, ``), platforms.Identity{}, platforms.ClassTransient, []string{me}},
		"outage, then":           {"at any time", inTurn(answers{noField, says(502, ``)}), platforms.Identity{}, platforms.ClassTransient, []string{me, pages}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, tc.answer)
			got, err := p.Identify(t.Context(), platforms.Token{Access: "access", Scopes: linked})
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if diff := cmp.Diff(tc.asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			for _, r := range server.Requests() {
				if r.Token != "access" || r.Query.Has("access_token") || !strings.Contains(r.Query.Get("fields"), "instagram_business_account{id,") {
					t.Errorf("asked %+v", r)
				}
			}
		})
	}
}

func TestRefreshLinked(t *testing.T) {
	tests := map[string]struct {
		reason string
		ends   time.Time
		class  platforms.Class
	}{
		"a Page's":  {"it has no end, and nothing renews it", time.Time{}, platforms.ClassReconnect},
		"good":      {"what works still must not be disconnected ahead of time", noon.Add(time.Hour), platforms.ClassTransient},
		"has ended": {"a person must connect again", noon, platforms.ClassReconnect},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, hangUp)
			got, err := p.Refresh(t.Context(), platforms.Token{Access: "access", Scopes: linked, ExpiresAt: tc.ends})
			if got != (platforms.Token{}) || class(err) != tc.class || len(server.Requests()) != 0 {
				t.Errorf("%s: %v after %v", tc.reason, err, server.Paths())
			}
		})
	}
}
