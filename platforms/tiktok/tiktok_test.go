// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// noon is the time of these tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var (
	says   = recorder.Respond
	hangUp = recorder.HangUp
	class  = recorder.ClassOf
)

func newTikTok(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	return New(Config{
		APIURL: server.URL + "/", ClientID: "key", ClientSecret: func() string { return "s3cr3t" }, Clock: clocktesting.NewFakeClock(noon),
	}, transport.New(transport.Options{})), server
}

func fails(status int, code string) http.HandlerFunc {
	return says(status, `{"data":{},"error":{"code":"`+code+`","message":"…","log_id":"1"}}`)
}

func TestIdentify(t *testing.T) {
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   platforms.Identity
		class  platforms.Class
	}{
		"account": {
			"the account is named by its open id, its name and its handle",
			says(200, `{"data":{"user":{"open_id":"o-1","display_name":"Acme","username":"acme","avatar_url":"https://cdn.example/a"}},"error":{"code":"ok","message":""}}`),
			platforms.Identity{AccountID: "o-1", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"},
			"",
		},
		"ended token":    {"an ended token is renewed", fails(401, "access_token_invalid"), platforms.Identity{}, platforms.ClassRefresh},
		"scope":          {"a person must grant the scope", fails(401, "scope_not_authorized"), platforms.Identity{}, platforms.ClassReconnect},
		"scope, a field": {"the same for the scope of one field", fails(400, "scope_permission_missed"), platforms.Identity{}, platforms.ClassReconnect},
		"within a 200":   {"an error may come with the status of a success", fails(200, "internal_error"), platforms.Identity{}, platforms.ClassTransient},
		"limited":        {"a limit passes", fails(429, "rate_limit_exceeded"), platforms.Identity{}, platforms.ClassRateLimited},
		"outage":         {"an outage passes", says(502, ``), platforms.Identity{}, platforms.ClassTransient},
		"hang up":        {"a lost answer is asked for again", hangUp, platforms.Identity{}, platforms.ClassTransient},
		"bad request":    {"a refusal of the request says nothing about the account", fails(400, "invalid_params"), platforms.Identity{}, platforms.ClassUnknown},
		"bare 401":       {"nor does a status alone", says(401, ``), platforms.Identity{}, platforms.ClassUnknown},
		"no account":     {"nor an answer without an account", says(200, `{"data":{},"error":{"code":"ok"}}`), platforms.Identity{}, platforms.ClassUnknown},
		"no word":        {"nor one that does not say that it is well", says(200, `{"data":{"user":{"open_id":"o-1"}}}`), platforms.Identity{}, platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newTikTok(t, tc.answer)
			got, err := p.Identify(t.Context(), platforms.Token{Access: "access"})
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if r := server.Requests()[0]; r.Path != "/v2/user/info/" || r.Token != "access" {
				t.Errorf("asked %+v", r)
			}
		})
	}
}

func TestIdentifyAsksForWhatWasGranted(t *testing.T) {
	for scopes, want := range map[string]bool{
		"": true, "user.info.basic user.info.profile": true, "user.info.basic,user.info.profile": true, "user.info.basic video.publish": false,
	} {
		p, server := newTikTok(t, says(500, ``))
		_, _ = p.Identify(t.Context(), platforms.Token{Access: "access", Scopes: scopes})
		if got := strings.Contains(server.Requests()[0].Query.Get("fields"), "username"); got != want {
			t.Errorf("with scopes %q the username is asked for: %v", scopes, got)
		}
	}
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Refresh: "r1", Scopes: "video.publish", ExpiresAt: noon}
	oauth := func(status int, code string) http.HandlerFunc {
		return says(status, `{"error":"`+code+`","error_description":"…","log_id":"1"}`)
	}
	tests := map[string]struct {
		reason string
		token  platforms.Token
		answer http.HandlerFunc
		want   platforms.Token
		class  platforms.Class
	}{
		"rotated": {
			"both tokens are replaced; scopes come with commas", old,
			says(200, `{"access_token":"a2","expires_in":7200,"refresh_token":"r2","refresh_expires_in":15552000,"open_id":"o-1","scope":"user.info.basic,video.publish","token_type":"Bearer"}`),
			platforms.Token{Access: "a2", Refresh: "r2", Scopes: "user.info.basic video.publish", ExpiresAt: noon.Add(2 * time.Hour), RefreshExpiresAt: noon.Add(180 * 24 * time.Hour)},
			"",
		},
		"not rotated": {
			"what is left out stays in force", old, says(200, `{"access_token":"a2","expires_in":60}`),
			platforms.Token{Access: "a2", Refresh: "r1", Scopes: "video.publish", ExpiresAt: noon.Add(time.Minute)},
			"",
		},
		"no refresh token": {"TikTok is not asked without one", platforms.Token{Access: "a1"}, nil, platforms.Token{}, platforms.ClassReconnect},
		"used or revoked":  {"a dead refresh token needs a person", old, oauth(400, "invalid_grant"), platforms.Token{}, platforms.ClassReconnect},
		"within a 200":     {"an error may come with the status of a success", old, oauth(200, "invalid_grant"), platforms.Token{}, platforms.ClassReconnect},
		"app refused":      {"connecting again would not help against a wrong secret", old, oauth(401, "invalid_client"), platforms.Token{}, platforms.ClassTransient},
		"request refused":  {"nor against a wrong configuration", old, oauth(400, "invalid_request"), platforms.Token{}, platforms.ClassTransient},
		"busy":             {"trouble passes", old, oauth(503, "temporarily_unavailable"), platforms.Token{}, platforms.ClassTransient},
		"limited":          {"a limit passes", old, oauth(429, "rate_limit_exceeded"), platforms.Token{}, platforms.ClassRateLimited},
		"outage":           {"an outage passes", old, says(502, ``), platforms.Token{}, platforms.ClassTransient},
		"hang up":          {"a lost answer does not disconnect the account", old, hangUp, platforms.Token{}, platforms.ClassTransient},
		"not TikTok's":     {"a 400 of something in between proves nothing", old, says(400, `Bad Request`), platforms.Token{}, platforms.ClassUnknown},
		"cut":              {"an answer without a token is not stored", old, says(200, `{"access_tok`), platforms.Token{}, platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newTikTok(t, tc.answer)
			got, err := p.Refresh(t.Context(), tc.token)
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if err != nil && (strings.Contains(err.Error(), "r1") || strings.Contains(err.Error(), "a1")) {
				t.Errorf("the message holds a token: %v", err)
			}
			if tc.answer == nil {
				return
			}
			asked := recorder.Request{Method: http.MethodPost, Path: "/v2/oauth/token/", Query: map[string][]string{}, Form: map[string][]string{
				"client_key": {"key"}, "client_secret": {"s3cr3t"}, "grant_type": {"refresh_token"}, "refresh_token": {"r1"},
			}}
			if diff := cmp.Diff(asked, server.Requests()[0]); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRateLimit(t *testing.T) {
	p, _ := newTikTok(t, fails(429, "rate_limit_exceeded"))
	_, err := p.Identify(t.Context(), platforms.Token{Access: "access"})
	if failure, ok := err.(*platforms.Error); !ok || !failure.RetryAt.Equal(noon.Add(time.Minute)) { //nolint:errorlint // the contract uses this type
		t.Errorf("got %+v; TikTok counts calls over a minute", err)
	}
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if len(limits.Categories) == 0 || len(limits.Delivers) != 2 || limits.RefreshLead != 15*time.Minute {
		t.Errorf("got %+v", limits)
	}
	if got := limits.CaptionLength("a🎉"); got != 3 {
		t.Errorf("an emoji is two UTF-16 code units; counted %d", got)
	}
}
