// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// noon is the time of these tests.
var noon = recorder.Noon

var (
	says   = recorder.Respond
	hangUp = recorder.HangUp
	class  = recorder.ClassOf

	identifies, renews, refuses = platformtest.Identified, platformtest.Renewed, platformtest.Refused
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
	account := platforms.Identity{AccountID: "o-1", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"}
	user := `"data":{"user":{"open_id":"o-1","display_name":"Acme","username":"acme","avatar_url":"https://cdn.example/a"}}`
	platformtest.Identify(t, newTikTok, "/v2/user/info/?fields=open_id,avatar_url,display_name,username",
		identifies("account", "it has an open id, a name and a handle", says(200, `{`+user+`,"error":{"code":"ok","message":""}}`), account),
		refuses("ended token", "an ended token is renewed", fails(401, "access_token_invalid"), platforms.ClassRefresh),
		refuses("scope", "a person must grant the scope", fails(401, "scope_not_authorized"), platforms.ClassReconnect),
		refuses("scope, a field", "the same for the scope of one field", fails(400, "scope_permission_missed"), platforms.ClassReconnect),
		refuses("within a 200", "an error may come with the status of a success", fails(200, "internal_error"), platforms.ClassTransient),
		refuses("limited", "TikTok counts calls over a minute", fails(429, "rate_limit_exceeded"), platforms.ClassRateLimited).Waiting(time.Minute),
		refuses("bad request", "a refusal of the request says nothing about the account", fails(400, "invalid_params"), platforms.ClassUnknown),
		refuses("bare 401", "nor does a status alone", says(401, ``), platforms.ClassUnknown),
		refuses("no account", "nor an answer without an account", says(200, `{"data":{},"error":{"code":"ok"}}`), platforms.ClassUnknown),
		refuses("no word", "nor one that does not say that it is well", says(200, `{`+user+`}`), platforms.ClassUnknown))
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
	rotated := platforms.Token{Access: "a2", Refresh: "r2", Scopes: "user.info.basic video.publish", ExpiresAt: noon.Add(2 * time.Hour)}
	rotated.RefreshExpiresAt = noon.Add(180 * 24 * time.Hour)
	kept := platforms.Token{Access: "a2", Refresh: "r1", Scopes: "video.publish", ExpiresAt: noon.Add(time.Minute)}
	oauth := func(status int, code string) http.HandlerFunc {
		return says(status, `{"error":"`+code+`","error_description":"…","log_id":"1"}`)
	}
	asked := recorder.Request{Method: http.MethodPost, Path: "/v2/oauth/token/", Form: url.Values{
		"client_key": {"key"}, "client_secret": {"s3cr3t"}, "grant_type": {"refresh_token"}, "refresh_token": {"r1"},
	}}
	platformtest.Renew(t, newTikTok, old, asked,
		renews("rotated", "both tokens are replaced; scopes come with commas", says(200, `{"access_token":"a2","expires_in":7200,`+
			`"refresh_token":"r2","refresh_expires_in":15552000,"open_id":"o-1","scope":"user.info.basic,video.publish","token_type":"Bearer"}`), rotated),
		renews("not rotated", "what is left out stays in force", says(200, `{"access_token":"a2","expires_in":60}`), kept),
		refuses("no refresh token", "TikTok is not asked without one", nil, platforms.ClassReconnect).Of(platforms.Token{Access: "a1"}),
		refuses("used or revoked", "a dead refresh token needs a person", oauth(400, "invalid_grant"), platforms.ClassReconnect),
		refuses("within a 200", "an error may come with the status of a success", oauth(200, "invalid_grant"), platforms.ClassReconnect),
		refuses("app refused", "connecting again would not help against a wrong secret", oauth(401, "invalid_client"), platforms.ClassTransient),
		refuses("request refused", "nor against a wrong configuration", oauth(400, "invalid_request"), platforms.ClassTransient),
		refuses("busy", "trouble passes", oauth(503, "temporarily_unavailable"), platforms.ClassTransient),
		refuses("limit by name", "a limit passes", oauth(429, "rate_limit_exceeded"), platforms.ClassRateLimited))
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
