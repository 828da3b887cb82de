// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/http"
	"slices"
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

func newYouTube(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	return New(Config{
		APIURL: server.URL + "/", ClientID: "id", ClientSecret: func() string { return "s3cr3t" }, Clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)},
	}, transport.New(transport.Options{})), server
}

func fails(status int, reason string, headers ...string) http.HandlerFunc {
	return says(status, `{"error":{"code":403,"message":"…","errors":[{"domain":"youtube","reason":"`+reason+`","message":"…"}]}}`, headers...)
}

func TestIdentify(t *testing.T) {
	type want struct {
		Identity platforms.Identity
		Class    platforms.Class
		RetryAt  time.Time
	}
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   want
	}{
		"channel": {
			"the channel is named by its id, its title and its handle",
			says(200, `{"kind":"youtube#channelListResponse","items":[{"id":"UC1","snippet":{"title":"Acme","customUrl":"@acme","thumbnails":{"default":{"url":"https://yt.example/a"}}}}]}`),
			want{Identity: platforms.Identity{AccountID: "UC1", DisplayName: "Acme", Username: "acme", IconURL: "https://yt.example/a"}},
		},
		"no channel":       {"an account without a channel needs one", says(200, `{"kind":"youtube#channelListResponse","pageInfo":{"totalResults":0}}`), want{Class: platforms.ClassReconnect}},
		"empty list":       {"the same in another form", says(200, `{"items":[]}`), want{Class: platforms.ClassReconnect}},
		"signup":           {"the same as an error", fails(401, "youtubeSignupRequired"), want{Class: platforms.ClassReconnect}},
		"ended token":      {"an ended token is renewed", fails(401, "authError"), want{Class: platforms.ClassRefresh}},
		"scope":            {"a person must grant the scope", fails(403, "insufficientPermissions"), want{Class: platforms.ClassReconnect}},
		"closed":           {"no repetition helps a closed channel", fails(403, "channelClosed"), want{Class: platforms.ClassPermanent}},
		"API off":          {"connecting again would not help against a wrong configuration", fails(403, "accessNotConfigured"), want{Class: platforms.ClassTransient}},
		"quota":            {"the quota is renewed at midnight Pacific time", fails(403, "quotaExceeded"), want{Class: platforms.ClassQuota, RetryAt: noon.Add(20 * time.Hour)}},
		"limited":          {"a limit passes", fails(403, "userRateLimitExceeded"), want{Class: platforms.ClassRateLimited}},
		"limited, by time": {"Google may say when", says(429, ``, "Retry-After", "30"), want{Class: platforms.ClassRateLimited, RetryAt: noon.Add(30 * time.Second)}},
		"limited, absurd":  {"a time in years is not believed", says(429, ``, "Retry-After", "99999999"), want{Class: platforms.ClassRateLimited}},
		"outage":           {"an outage passes", fails(503, "backendError"), want{Class: platforms.ClassTransient}},
		"bad request":      {"a request that YouTube does not take says nothing about the account", fails(400, "badRequest"), want{Class: platforms.ClassUnknown}},
		"hang up":          {"a lost answer is asked for again", hangUp, want{Class: platforms.ClassTransient}},
		"forbidden":        {"a refusal without a reason says nothing about the account", says(403, `{}`), want{Class: platforms.ClassUnknown}},
		"wrong server":     {"nor does an answer that is not YouTube's", says(404, `not here`), want{Class: platforms.ClassUnknown}},
		"not JSON":         {"nor a success that cannot be read", says(200, `<html>`), want{Class: platforms.ClassUnknown}},
		"empty":            {"nor one that says nothing", says(200, `{}`), want{Class: platforms.ClassUnknown}},
		"no id":            {"nor a channel without an id", says(200, `{"items":[{}]}`), want{Class: platforms.ClassUnknown}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newYouTube(t, tc.answer)
			identity, err := p.Identify(t.Context(), platforms.Token{Access: "access"})
			got := want{Identity: identity, Class: class(err)}
			if failure, ok := err.(*platforms.Error); ok { //nolint:errorlint // the contract uses this type
				got.RetryAt = failure.RetryAt
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if r := server.Requests()[0]; r.Path != "/youtube/v3/channels" || r.Query.Get("mine") != "true" || r.Token != "access" {
				t.Errorf("asked %+v", r)
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Refresh: "r1", Scopes: "s", ExpiresAt: noon}
	oauth := func(status int, code string) http.HandlerFunc {
		return says(status, `{"error":"`+code+`","error_description":"…"}`)
	}
	tests := map[string]struct {
		reason string
		token  platforms.Token
		answer http.HandlerFunc
		want   platforms.Token
		class  platforms.Class
	}{
		"renewed": {
			"Google leaves the refresh token as it is", old, says(200, `{"access_token":"a2","expires_in":3599,"scope":"s t","token_type":"Bearer"}`),
			platforms.Token{Access: "a2", Refresh: "r1", Scopes: "s t", ExpiresAt: noon.Add(3599 * time.Second)},
			"",
		},
		"rotated":          {"a new one would be kept", old, says(200, `{"access_token":"a2","refresh_token":"r2"}`), platforms.Token{Access: "a2", Refresh: "r2", Scopes: "s"}, ""},
		"no refresh token": {"Google is not asked without one", platforms.Token{Access: "a1"}, nil, platforms.Token{}, platforms.ClassReconnect},
		"dead":             {"a dead refresh token needs a person", old, oauth(400, "invalid_grant"), platforms.Token{}, platforms.ClassReconnect},
		"app refused":      {"connecting again would not help against a wrong secret", old, oauth(401, "invalid_client"), platforms.Token{}, platforms.ClassTransient},
		"limited":          {"a limit passes", old, says(429, ``), platforms.Token{}, platforms.ClassRateLimited},
		"outage":           {"an outage passes", old, says(500, ``), platforms.Token{}, platforms.ClassTransient},
		"hang up":          {"a lost answer does not disconnect the account", old, hangUp, platforms.Token{}, platforms.ClassTransient},
		"not Google's":     {"a 400 of something in between proves nothing", old, says(400, `Bad Request`), platforms.Token{}, platforms.ClassUnknown},
		"cut":              {"an answer without a token is not stored", old, says(200, `{"access_tok`), platforms.Token{}, platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newYouTube(t, tc.answer)
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
			asked := recorder.Request{Method: http.MethodPost, Path: "/token", Query: map[string][]string{}, Form: map[string][]string{
				"client_id": {"id"}, "client_secret": {"s3cr3t"}, "grant_type": {"refresh_token"}, "refresh_token": {"r1"},
			}}
			if diff := cmp.Diff(asked, server.Requests()[0]); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuotaRenewed(t *testing.T) {
	tests := map[string]struct {
		reason    string
		now, want time.Time
	}{
		"winter":      {"midnight Pacific standard time", time.Date(2026, 11, 20, 7, 59, 0, 0, time.UTC), time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)},
		"at":          {"the very instant is the next day's", time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)},
		"month end":   {"days follow the calendar", time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)},
		"summer":      {"midnight Pacific daylight time", time.Date(2026, 7, 1, 6, 59, 0, 0, time.UTC), time.Date(2026, 7, 1, 7, 0, 0, 0, time.UTC)},
		"clocks back": {"the day on which clocks go back has 25 hours", time.Date(2026, 11, 1, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := quotaRenewed(tc.now); !got.Equal(tc.want) {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	if p := New(Config{}, nil); p.api.BaseURL != DefaultAPIURL || p.Tokens.BaseURL != DefaultTokenURL {
		t.Errorf("Google renews tokens at another host: %q, %q", p.api.BaseURL, p.Tokens.BaseURL)
	}
	if p := New(Config{WebURL: "https://tube.example/"}, nil); p.videoURL("AbC-_1") != "https://tube.example/watch?v=AbC-_1" {
		t.Errorf("a video is watched at %q", p.videoURL("AbC-_1"))
	}
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if !slices.Equal(limits.Delivers, limits.Categories) || len(limits.ListingAuthoritative) > 0 || limits.RefreshLead != 5*time.Minute {
		t.Errorf("got %+v", limits)
	}
	if got := limits.CaptionLength("é"); got != 2 {
		t.Errorf("bytes are counted; got %d", got)
	}
	if limits.CaptionProblem("a < b") == "" || limits.CaptionProblem("a and b") != "" {
		t.Error("angle brackets are refused, and nothing else")
	}
}
