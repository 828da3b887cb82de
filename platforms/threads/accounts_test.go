// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

func TestIdentify(t *testing.T) {
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   platforms.Identity
		class  platforms.Class
	}{
		"account": {
			"the account is named by its id, its name and its handle",
			says(200, `{"id":"42","username":"acme","name":"Acme","threads_profile_picture_url":"https://cdn.example/a"}`),
			platforms.Identity{AccountID: "42", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"},
			"",
		},
		"number, no name": {
			"an id may come as a number; who has no name is known by the handle",
			says(200, `{"id":24000000000000001,"username":"acme"}`),
			platforms.Identity{AccountID: "24000000000000001", DisplayName: "acme", Username: "acme"},
			"",
		},
		"dead token":   {"nothing renews a dead token", problem(400, 190, 463, false), platforms.Identity{}, platforms.ClassReconnect},
		"permission":   {"a person must grant it", problem(403, 200, 0, false), platforms.Identity{}, platforms.ClassReconnect},
		"limited":      {"a limit passes", problem(403, 4, 0, true), platforms.Identity{}, platforms.ClassRateLimited},
		"outage":       {"an outage passes", says(500, ``), platforms.Identity{}, platforms.ClassTransient},
		"hang up":      {"a lost answer is asked for again", hangUp, platforms.Identity{}, platforms.ClassTransient},
		"bad request":  {"a refusal of the request says nothing about the account", problem(400, 100, 0, false), platforms.Identity{}, platforms.ClassUnknown},
		"wrong server": {"nor does an answer that is not of Threads", says(404, `not here`), platforms.Identity{}, platforms.ClassUnknown},
		"empty":        {"nor one without an account", says(200, `{}`), platforms.Identity{}, platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newThreads(t, tc.answer)
			got, err := p.Identify(t.Context(), platforms.Token{Access: "access"})
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if r := server.Requests()[0]; r.Path != "/v1.0/me" || r.Token != "access" || r.Query.Has("access_token") {
				t.Errorf("asked %+v", r)
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Scopes: "threads_basic", ExpiresAt: noon}
	tests := map[string]struct {
		reason string
		token  platforms.Token
		answer http.HandlerFunc
		want   platforms.Token
		class  platforms.Class
	}{
		"renewed": {
			"the new token takes the place of the old one, and lives as long as Threads says",
			old, says(200, `{"access_token":"a2","token_type":"bearer","expires_in":5184000}`),
			platforms.Token{Access: "a2", Scopes: "threads_basic", ExpiresAt: noon.Add(60 * 24 * time.Hour)},
			"",
		},
		"left-over refresh token": {
			"an access token renews itself, whatever else is stored",
			platforms.Token{Access: "a1", Refresh: "r1"},
			says(200, `{"access_token":"a2","expires_in":"60"}`),
			platforms.Token{Access: "a2", Refresh: "r1", ExpiresAt: noon.Add(time.Minute)},
			"",
		},
		"dead":      {"a dead token needs a person", old, problem(400, 190, 463, false), platforms.Token{}, platforms.ClassReconnect},
		"too young": {"a token that may not be renewed yet is good", old, problem(400, 100, 0, false), platforms.Token{}, platforms.ClassTransient},
		"limited":   {"a limit passes", old, says(429, ``), platforms.Token{}, platforms.ClassRateLimited},
		"outage":    {"an outage passes", old, says(502, ``), platforms.Token{}, platforms.ClassTransient},
		"hang up":   {"a lost answer does not disconnect the account", old, hangUp, platforms.Token{}, platforms.ClassTransient},
		"not ours":  {"a 400 of something in between proves nothing", old, says(400, `Bad Request`), platforms.Token{}, platforms.ClassUnknown},
		"cut":       {"an answer without a token is not stored", old, says(200, `{"access_tok`), platforms.Token{}, platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newThreads(t, tc.answer)
			got, err := p.Refresh(t.Context(), tc.token)
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			r := server.Requests()[0]
			if r.Path != "/refresh_access_token" || r.Query.Get("grant_type") != "th_refresh_token" || r.Query.Get("access_token") != "a1" {
				t.Errorf("asked %+v", r)
			}
			if err != nil && strings.Contains(err.Error(), "a1") {
				t.Errorf("the message holds a token: %v", err)
			}
		})
	}
}
