// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const verifier = "a-verifier-that-is-at-least-forty-three-letters-long"

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func authorizePath(change url.Values) string {
	query := url.Values{
		"response_type": {"code"}, "client_id": {"tests"}, "redirect_uri": {"http://127.0.0.1/back?a=b"}, "state": {"s 1"},
		"scope": {"tweet.read users.read"}, "code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "account": {demoID},
	}
	maps.Copy(query, change)
	return "/x/i/oauth2/authorize?" + query.Encode()
}

// code consents as the demo account's owner and returns the code.
func code(b *box, scope string) string {
	b.t.Helper()
	r := b.call(http.MethodGet, authorizePath(url.Values{"scope": {scope}}), "", "", "")
	back, err := url.Parse(r.header.Get("Location"))
	if err != nil || r.status != http.StatusFound {
		b.t.Fatalf("consent: %d %s", r.status, r.body)
	}
	if query := back.Query(); query.Get("state") != "s 1" || query.Get("a") != "b" || back.Host != "127.0.0.1" {
		b.t.Errorf("sent back to %s", back)
	}
	return back.Query().Get("code")
}

func exchange(b *box, change url.Values) reply {
	b.t.Helper()
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"tests"}, "redirect_uri": {"http://127.0.0.1/back?a=b"},
		"code_verifier": {verifier},
	}
	maps.Copy(form, change)
	return b.call(http.MethodPost, "/x/2/oauth2/token", "", "application/x-www-form-urlencoded", form.Encode())
}

// authorize returns an access token with the scopes.
func authorize(b *box, scope string) string {
	b.t.Helper()
	return exchange(b, url.Values{"code": {code(b, scope)}}).text("access_token")
}

func TestAuthorizationCode(t *testing.T) {
	b := start(t, "")
	r := exchange(b, url.Values{"code": {code(b, "tweet.read users.read offline.access")}})
	if r.status != http.StatusOK || r.text("token_type") != "bearer" || r.at("expires_in") != 7200.0 || r.text("refresh_token") == "" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := exchange(b, url.Values{"code": {code(b, "tweet.read users.read")}}); r.text("access_token") == "" || r.text("refresh_token") != "" {
		t.Errorf("without offline.access there is no refresh token: %s", r.body)
	}
	tests := []struct {
		name   string
		change url.Values
		step   time.Duration
	}{
		{"another verifier", url.Values{"code_verifier": {"another"}}, 0},
		{"no verifier", url.Values{"code_verifier": {""}}, 0},
		{"another client", url.Values{"client_id": {"another"}}, 0},
		{"another way back", url.Values{"redirect_uri": {"http://127.0.0.1/back"}}, 0},
		{"too late", nil, 30 * time.Second},
		{"made up", url.Values{"code": {"made-up"}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			form := url.Values{"code": {code(b, "tweet.read")}}
			maps.Copy(form, tt.change)
			b.clock.Step(tt.step)
			if r := exchange(b, form); r.status != http.StatusBadRequest || r.text("error") != "invalid_request" {
				t.Errorf("%d %s", r.status, r.body)
			}
			if r := exchange(b, url.Values{"code": form["code"]}); r.text("error") != "invalid_request" {
				t.Errorf("a code is good for one try: %d %s", r.status, r.body)
			}
		})
	}
}

func TestAuthorizeRefusals(t *testing.T) {
	b := start(t, "")
	tests := []struct {
		name   string
		change url.Values
		want   int
	}{
		{"no account chosen yet", url.Values{"account": {""}}, 200},
		{"unknown account", url.Values{"account": {"9"}}, 404},
		{"no PKCE", url.Values{"code_challenge": {""}}, 400},
		{"unknown method", url.Values{"code_challenge_method": {"S512"}}, 400},
		{"no state", url.Values{"state": {""}}, 400},
		{"state too long", url.Values{"state": {strings.Repeat("s", 501)}}, 400},
		{"scopes with commas", url.Values{"scope": {"tweet.read,users.read"}}, 400},
		{"no way back", url.Values{"redirect_uri": {"/back"}}, 400},
		{"another response type", url.Values{"response_type": {"token"}}, 400},
		{"no client", url.Values{"client_id": {""}}, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(http.MethodGet, authorizePath(tt.change), "", "", "")
			if r.status != tt.want || r.header.Get("Location") != "" {
				t.Errorf("%d to %q, want %d", r.status, r.header.Get("Location"), tt.want)
			}
		})
	}
	page := b.call(http.MethodGet, authorizePath(url.Values{"account": {""}}), "", "", "")
	if !strings.Contains(page.body, "@herald_demo") || !strings.Contains(page.body, "account="+demoID) {
		t.Errorf("the page offers no account:\n%s", page.body)
	}
}

func TestRotation(t *testing.T) {
	b := start(t, "")
	first := b.refresh("x-refresh-demo")
	if first.status != http.StatusOK || first.text("scope") != "tweet.read tweet.write users.read media.write offline.access" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	if r := b.refresh("x-refresh-demo"); r.status != http.StatusBadRequest || r.text("error") != "invalid_request" {
		t.Errorf("a used refresh token: %d %s", r.status, r.body)
	}
	for name, token := range map[string]string{"the new": first.text("access_token"), "the old": demoAccess} {
		if r := b.call(http.MethodGet, "/x/2/users/me", token, "", ""); r.status != http.StatusOK {
			t.Errorf("%s access token: %d, want 200 until its time is over", name, r.status)
		}
	}
	if r := b.refresh(first.text("refresh_token")); r.status != http.StatusOK {
		t.Errorf("the new refresh token: %d %s", r.status, r.body)
	}
}

func TestRotationWhoseAnswerIsLost(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"refresh_token","kind":"drop_after"}`)
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x-refresh-demo"}, "client_id": {"tests"}}
	if _, err := b.try(http.MethodPost, "/x/2/oauth2/token", "", "application/x-www-form-urlencoded", form.Encode()); err == nil {
		t.Fatal("want no answer")
	}
	if r := b.refresh("x-refresh-demo"); r.text("error") != "invalid_request" {
		t.Errorf("the token was used up though the answer was lost: %d %s", r.status, r.body)
	}
}

func TestTokenEndpointRefusals(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	tests := []struct {
		name, contentType, body, wantError string
		want                               int
	}{
		{"no client", form, "grant_type=refresh_token&refresh_token=x-refresh-demo", "unauthorized_client", 401},
		{"no token", form, "grant_type=refresh_token&client_id=c", "invalid_request", 400},
		{"unknown token", form, "grant_type=refresh_token&client_id=c&refresh_token=x", "invalid_request", 400},
		{"an access token instead", form, "grant_type=refresh_token&client_id=c&refresh_token=" + demoAccess, "invalid_request", 400},
		{"another grant", form, "grant_type=password&client_id=c", "unsupported_grant_type", 400},
		{"another type", "text/plain", `grant_type=refresh_token`, "invalid_request", 400},
		{"JSON that is none", "application/json", `grant_type=refresh_token`, "invalid_request", 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			r := b.call(http.MethodPost, "/x/2/oauth2/token", "", tt.contentType, tt.body)
			if r.status != tt.want || r.text("error") != tt.wantError || r.text("error_description") == "" {
				t.Errorf("%d %s, want %d %s", r.status, r.body, tt.want, tt.wantError)
			}
		})
	}
}

func TestConfidentialClient(t *testing.T) {
	tests := []struct {
		name, id, secret string
		want             int
	}{
		{"id and secret", "id", "secret", 200},
		{"no secret", "id", "", 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.http.URL+"/x/2/oauth2/token",
				strings.NewReader("grant_type=refresh_token&refresh_token=x-refresh-demo"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.SetBasicAuth(tt.id, tt.secret)
			resp, err := b.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.want)
			}
		})
	}
}

func TestRevoke(t *testing.T) {
	b := start(t, "")
	revoke := func(token string) reply {
		return b.call(http.MethodPost, "/x/2/oauth2/revoke", "", "application/x-www-form-urlencoded",
			url.Values{"token": {token}, "client_id": {"tests"}}.Encode())
	}
	if r := revoke(demoAccess); r.status != http.StatusOK || r.at("revoked") != true {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := b.get("/x/2/users/me"); r.status != http.StatusUnauthorized {
		t.Errorf("a revoked access token: %d", r.status)
	}
	fresh := b.refresh("x-refresh-demo")
	if fresh.status != http.StatusOK {
		t.Fatalf("the refresh token goes on working: %d %s", fresh.status, fresh.body)
	}
	revoke(fresh.text("refresh_token"))
	if r := b.call(http.MethodGet, "/x/2/users/me", fresh.text("access_token"), "", ""); r.status != http.StatusUnauthorized {
		t.Errorf("an access token of a revoked refresh token: %d", r.status)
	}
	if r := b.refresh(fresh.text("refresh_token")); r.text("error") != "invalid_request" {
		t.Errorf("a revoked refresh token: %d %s", r.status, r.body)
	}
	if r := revoke("made-up"); r.status != http.StatusOK {
		t.Errorf("an unknown token is no error: %d %s", r.status, r.body)
	}
	now := b.control(http.MethodGet, "/accounts/x/"+demoID, "", http.StatusOK)
	if diff := cmp.Diff([]string{"", ""}, []string{now.text("data", "access_token"), now.text("data", "refresh_token")}); diff != "" {
		t.Errorf("no token is left (-want +got):\n%s", diff)
	}
	if r := b.control(http.MethodPut, "/accounts/x/"+demoID, "", http.StatusOK); r.text("data", "refresh_token") == "" {
		t.Error("PUT gives an account without tokens new ones")
	}
}
