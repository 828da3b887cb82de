// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth2_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

func TestNeeds(t *testing.T) {
	t.Parallel()
	needs := oauth2.RequiredScopes{{"read"}, {"write"}, {"publish", "draft"}}
	tests := map[string]struct{ reason, granted, words string }{
		"all":         {"no permission is missing", "read write publish", ""},
		"alternative": {"one of several is enough", "draft write read", ""},
		"commas":      {"some platforms write commas", "read,write,publish", ""},
		"more":        {"additional permissions are accepted", "read write publish delete", ""},
		"one":         {"the missing permission is named", "read publish", "the permission write,"},
		"several":     {"all that are missing are named, alternatives by the first", "", "the permissions read, write and publish,"},
		"prefix":      {"a longer name is another permission", "read write publish-later", "the permission publish,"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := needs.Check("Acme", tc.granted)
			if (err == nil) != (tc.words == "") || err != nil && (err.Class != platforms.ClassReconnect || !strings.Contains(err.Problem, tc.words)) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

func TestExchange(t *testing.T) {
	t.Parallel()
	const code, verifier, secret = "the-code", "the-verifier", "the-secret"
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		reason        string
		status        int
		body          string
		class         platforms.Class
		words, scopes string
	}{
		"success":          {"the granted scopes are stored", 200, `{"access_token":"a","refresh_token":"r","expires_in":60,"scope":"read,write,more"}`, "", "", "read write more"},
		"no scopes":        {"missing scopes mean the requested ones (RFC 6749, section 5.1)", 200, `{"access_token":"a","refresh_token":"r"}`, "", "", "read write"},
		"missing scope":    {"a user switched it off", 200, `{"access_token":"a","refresh_token":"r","scope":"read"}`, platforms.ClassReconnect, "permission write", ""},
		"no refresh token": {"the connection would end with the access token", 200, `{"access_token":"a","scope":"read write"}`, platforms.ClassReconnect, "did not return a refresh token", ""},
		"no token":         {"the token is missing", 200, `{}`, platforms.ClassUnknown, "did not return an access token", ""},
		"invalid grant":    {"the code is spent", 400, `{"error":"invalid_grant"}`, platforms.ClassReconnect, "no longer accepts", ""},
		"X's code":         {"X calls it otherwise", 400, `{"error":"invalid_request","error_description":"Value passed for the authorization code was invalid."}`, platforms.ClassReconnect, "no longer accepts", ""},
		"TikTok's code":    {"TikTok sends errors with the status of a success", 200, `{"error":"invalid_request","error_description":"Code verifier or code challenge is invalid."}`, platforms.ClassReconnect, "no longer accepts", ""},
		"Google's address": {"the administrator has to enter the address", 400, `{"error":"redirect_uri_mismatch"}`, platforms.ClassPermanent, "redirect URIs", ""},
		"TikTok's address": {"the same in TikTok's format", 200, `{"error":"invalid_request","error_description":"Redirect_uri is not matched with the uri when requesting code."}`, platforms.ClassPermanent, "redirect URIs", ""},
		"bad app":          {"the administrator has to correct it", 401, `{"error":"invalid_client"}`, platforms.ClassTransient, "client id or client secret", ""},
		"outage":           {"unknown errors are classified by the platform", 502, `<html>`, platforms.ClassTransient, "trouble", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				want := url.Values{
					"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {"https://back"}, "code_verifier": {verifier}, "client_id": {"me"},
				}
				if err := r.ParseForm(); err != nil || r.PostForm.Encode() != want.Encode() || r.Method != http.MethodPost || r.URL.RawQuery != "" {
					t.Errorf("requested %s %s with %s, %v", r.Method, r.URL, r.PostForm.Encode(), err)
				}
				if id, pass, ok := r.BasicAuth(); !ok || id != "me" || pass != secret {
					t.Errorf("the app shows itself as %q", id)
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			t.Cleanup(server.Close)
			e := oauth2.Endpoint{
				Client: client.Client{Platform: "acme", Name: "Acme", BaseURL: server.URL, Transport: transport.New(transport.Options{})},
				Path:   "/token", Timeout: time.Minute, Clock: clocktesting.NewFakeClock(now), AnyStatus: true,
				App: func() oauth2.App { return oauth2.App{ID: "me", Secret: secret, Form: url.Values{"client_id": {"me"}}} },
				Refused: func(*transport.Response, string) *platforms.Error {
					return platforms.Errorf(platforms.ClassTransient, "Acme has trouble")
				},
			}
			token, err := e.Exchange(t.Context(), platforms.Code{Value: code, RedirectURI: "https://back", Verifier: verifier}, "read write", oauth2.RequiredScopes{{"read"}, {"write"}})
			if tc.class == "" {
				if err != nil || token.Access != "a" || token.Refresh != "r" || token.Scopes != tc.scopes {
					t.Errorf("%s: got %+v, %v", tc.reason, token, err)
				}
				return
			}
			failure, ok := errors.AsType[*platforms.Error](err)
			if !ok || failure.Class != tc.class || !strings.Contains(failure.Error(), tc.words) || token != (platforms.Token{}) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			for cause := err; cause != nil; cause = errors.Unwrap(cause) {
				for _, hidden := range []string{code, verifier, secret} {
					if strings.Contains(cause.Error(), hidden) {
						t.Errorf("the error contains a secret: %v", cause)
					}
				}
			}
		})
	}
}
