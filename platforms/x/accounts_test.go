// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

func classOfError(err error) platforms.Class {
	if failure, ok := errors.AsType[*platforms.Error](err); ok {
		return failure.Class
	}
	return ""
}

func TestIdentify(t *testing.T) {
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   platforms.Identity
		class  platforms.Class
	}{
		"account": {
			reason: "the account is named by its id, its name and its handle",
			answer: says(200, `{"data":{"id":"2244994945","name":"Acme","username":"acme","profile_image_url":"https://pbs.twimg.com/a_normal.jpg"}}`),
			want:   platforms.Identity{AccountID: "2244994945", DisplayName: "Acme", Username: "acme", IconURL: "https://pbs.twimg.com/a_normal.jpg"},
		},
		"ended token":  {"an ended token is renewed", says(401, `{"title":"Unauthorized","type":"about:blank"}`), platforms.Identity{}, platforms.ClassRefresh},
		"no scope":     {"a missing scope needs a person", says(403, `{"type":"https://api.x.com/2/problems/not-authorized-for-resource"}`), platforms.Identity{}, platforms.ClassReconnect},
		"rate limited": {"a limit passes", says(429, ``), platforms.Identity{}, platforms.ClassRateLimited},
		"outage":       {"an outage passes", says(503, `oops`), platforms.Identity{}, platforms.ClassTransient},
		"hang up":      {"a lost answer is asked for again", hangUp, platforms.Identity{}, platforms.ClassTransient},
		"wrong server": {"an answer that is not X's says nothing about the account", says(404, `not here`), platforms.Identity{}, platforms.ClassUnknown},
		"empty":        {"nor does one without an account", says(200, `{}`), platforms.Identity{}, platforms.ClassUnknown},
		"errors with status 200": {
			"X reports some refusals beside the data",
			says(200, `{"errors":[{"title":"Authorization Error","type":"https://api.twitter.com/2/problems/not-authorized-for-resource"}]}`),
			platforms.Identity{},
			platforms.ClassReconnect,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, requests := newX(t, Config{}, tc.answer)
			got, err := p.Identify(t.Context(), platforms.Token{Access: "access"})
			if diff := cmp.Diff(tc.want, got); diff != "" || classOfError(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if r := requests()[0]; r.URL.Path != "/2/users/me" || r.Header.Get("Authorization") != "Bearer access" {
				t.Errorf("asked %s with %q", r.URL.Path, r.Header.Get("Authorization"))
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Refresh: "r1", Scopes: "tweet.read", ExpiresAt: noon}
	tests := map[string]struct {
		reason string
		token  platforms.Token
		answer http.HandlerFunc
		want   platforms.Token
		class  platforms.Class
	}{
		"rotated": {
			reason: "both tokens are replaced, and the end follows from expires_in",
			token:  old,
			answer: says(200, `{"token_type":"bearer","expires_in":7200,"access_token":"a2","scope":"tweet.read tweet.write","refresh_token":"r2"}`),
			want:   platforms.Token{Access: "a2", Refresh: "r2", Scopes: "tweet.read tweet.write", ExpiresAt: noon.Add(2 * time.Hour)},
		},
		"not rotated": {
			reason: "a refresh token that is left out stays in force",
			token:  old,
			answer: says(200, `{"access_token":"a2","expires_in":60}`),
			want:   platforms.Token{Access: "a2", Refresh: "r1", Scopes: "tweet.read", ExpiresAt: noon.Add(time.Minute)},
		},
		"no refresh token": {"X is not asked without one", platforms.Token{Access: "a1"}, nil, platforms.Token{}, platforms.ClassReconnect},
		"used or revoked":  {"a dead refresh token needs a person", old, says(400, `{"error":"invalid_grant","error_description":"…"}`), platforms.Token{}, platforms.ClassReconnect},
		"X's own wording":  {"X often says invalid_request for the same", old, says(400, `{"error":"invalid_request","error_description":"Value passed for the token was invalid."}`), platforms.Token{}, platforms.ClassReconnect},
		"bad request": {
			"the same code says that the request is wrong, which is the administrator's to mend", old,
			says(400, `{"error":"invalid_request","error_description":"Missing required parameter [client_id]."}`),
			platforms.Token{},
			platforms.ClassTransient,
		},
		"no description": {
			"without a description it does not say that the token is dead", old, says(400, `{"error":"invalid_request"}`), platforms.Token{}, platforms.ClassTransient,
		},
		"with status 401": {"the status varies", old, says(401, `{"error":"invalid_grant"}`), platforms.Token{}, platforms.ClassReconnect},
		"app refused":     {"connecting again would not help against a wrong client secret", old, says(401, `{"error":"invalid_client"}`), platforms.Token{}, platforms.ClassTransient},
		"not X's answer":  {"a 400 without OAuth's words proves nothing about the token", old, says(400, `Bad Request`), platforms.Token{}, platforms.ClassUnknown},
		"rate limited":    {"a limit passes", old, says(429, ``), platforms.Token{}, platforms.ClassRateLimited},
		"outage":          {"an outage passes", old, says(502, ``), platforms.Token{}, platforms.ClassTransient},
		"hang up":         {"a lost answer does not disconnect the account", old, hangUp, platforms.Token{}, platforms.ClassTransient},
		"success, cut":    {"an answer without a token is not stored", old, says(200, `{"access_tok`), platforms.Token{}, platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newX(t, Config{}, tc.answer)
			got, err := p.Refresh(t.Context(), tc.token)
			if diff := cmp.Diff(tc.want, got); diff != "" || classOfError(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if err != nil && (strings.Contains(err.Error(), "r1") || strings.Contains(err.Error(), "a1")) {
				t.Errorf("the message holds a token: %v", err)
			}
		})
	}
}

func TestRefreshNamesTheClient(t *testing.T) {
	answer := says(200, `{"access_token":"a2","refresh_token":"r2"}`)
	tests := map[string]struct {
		reason    string
		config    Config
		basic     bool
		inTheBody string
	}{
		"confidential": {"an app with a secret shows it in the header and nothing in the body", Config{ClientID: "id", ClientSecret: func() string { return "secret" }}, true, ""},
		"public":       {"an app without one names itself in the body", Config{ClientID: "id"}, false, "id"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, requests := newX(t, tc.config, answer)
			if _, err := p.Refresh(t.Context(), platforms.Token{Refresh: "r1"}); err != nil {
				t.Fatal(err)
			}
			r := requests()[0]
			if err := r.ParseForm(); err != nil {
				t.Fatal(err)
			}
			user, password, basic := r.BasicAuth()
			if basic != tc.basic || basic && (user != "id" || password != "secret") {
				t.Errorf("%s: got Basic %v %q %q", tc.reason, basic, user, password)
			}
			if got := r.PostForm.Get("client_id"); got != tc.inTheBody {
				t.Errorf("%s: client_id is %q", tc.reason, got)
			}
			if r.PostForm.Get("grant_type") != "refresh_token" || r.PostForm.Get("refresh_token") != "r1" {
				t.Errorf("the form is %v", r.PostForm)
			}
		})
	}
}
