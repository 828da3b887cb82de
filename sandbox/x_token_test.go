// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const (
	verifier = "a-verifier-that-is-at-least-forty-three-letters-long"
	xToken   = "/x/2/oauth2/token"
)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// authorizePath returns X's consent address with changed parameters, as a query.
func authorizePath(change string) string {
	values := url.Values{
		"response_type": {"code"}, "client_id": {"tests"}, "redirect_uri": {"http://127.0.0.1/back?a=b"}, "state": {"s 1"},
		"scope": {"tweet.read users.read"}, "code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "account": {demoID},
	}
	maps.Copy(values, query(change))
	return "/x/i/oauth2/authorize?" + values.Encode()
}

// code consents as the demo account's owner and returns the code.
func code(b *box, scope string) string {
	b.t.Helper()
	r := b.page(authorizePath("scope="+url.QueryEscape(scope))).want(b.t, "consent", 302, "Location~http://127.0.0.1/back?")
	back, err := url.Parse(r.header.Get("Location"))
	if query := back.Query(); err != nil || query.Get("state") != "s 1" || query.Get("a") != "b" {
		b.t.Errorf("the user is sent back to %s, %v", back, err)
	}
	return back.Query().Get("code")
}

// exchange exchanges a code, with changed parameters as a query.
func exchange(b *box, code, change string) reply {
	b.t.Helper()
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"tests"}, "redirect_uri": {"http://127.0.0.1/back?a=b"},
		"code_verifier": {verifier}, "code": {code},
	}
	maps.Copy(form, query(change))
	return b.call(http.MethodPost, xToken, "", formType, form.Encode())
}

// authorize returns an access token with the scopes.
func authorize(b *box, scope string) string {
	b.t.Helper()
	return exchange(b, code(b, scope), "").text("access_token")
}

func TestAuthorizationCode(t *testing.T) {
	b := start(t, "")
	exchange(b, code(b, "tweet.read users.read offline.access"), "").
		want(t, "offline.access gives a refresh token", 200, "token_type=bearer", "expires_in=7200", "refresh_token=*")
	exchange(b, code(b, "tweet.read users.read"), "").want(t, "other scopes give none", "access_token=*", "refresh_token=")
	for _, tt := range []struct {
		why, change string
		step        time.Duration
	}{
		{"another verifier", "code_verifier=another", 0},
		{"no verifier", "code_verifier=", 0},
		{"another client", "client_id=another", 0},
		{"another redirect URI", "redirect_uri=http://127.0.0.1/back", 0},
		{"an expired code", "", 30 * time.Second},
	} {
		once := code(b, "tweet.read")
		b.clock.Step(tt.step)
		exchange(b, once, tt.change).want(t, tt.why, 400, "error=invalid_request")
		exchange(b, once, "").want(t, tt.why+": a code works for one attempt only", "error=invalid_request")
	}
	exchange(b, "made-up", "").want(t, "an invented code", 400, "error=invalid_request")
}

func TestAuthorizeRefusals(t *testing.T) {
	b := start(t, "")
	send := func(change string) reply {
		return b.page(authorizePath(change)).want(t, change+" redirects", "Location: ")
	}
	b.each(t, send, []row{
		{"the page offers the accounts to choose from", "account=", is{200, "~@herald_demo", "~account=" + demoID}},
		{"an unknown account", "account=9", is{404}},
		{"PKCE is required", "code_challenge=", is{400}},
		{"an unknown PKCE method", "code_challenge_method=S512", is{400}},
		{"a state is required", "state=", is{400}},
		{"a state of more than 500 characters", "state=" + strings.Repeat("s", 501), is{400}},
		{"scopes are separated by spaces", "scope=tweet.read,users.read", is{400}},
		{"the redirect URI is absolute", "redirect_uri=/back", is{400}},
		{"codes are the only response type", "response_type=token", is{400}},
		{"a client is required", "client_id=", is{400}},
	})
}

func TestRotation(t *testing.T) {
	b := start(t, "")
	first := b.refresh("x-refresh-demo").want(t, "a refresh", 200, "scope=tweet.read tweet.write users.read media.write offline.access")
	b.refresh("x-refresh-demo").want(t, "a refresh token that is used up", 400, "error=invalid_request")
	for name, token := range map[string]string{"new": first.text("access_token"), "old": demoAccess} {
		b.call(http.MethodGet, "/x/2/users/me", token, "", "").want(t, "the "+name+" access token works until it expires", 200)
	}
	b.fault(`{"platform":"x","operation":"refresh_token","kind":"drop_after"}`)
	form := "grant_type=refresh_token&client_id=tests&refresh_token=" + first.text("refresh_token")
	if _, err := b.try(http.MethodPost, xToken, "", formType, form); err == nil {
		t.Error("the connection should have been closed")
	}
	b.refresh(first.text("refresh_token")).want(t, "a refresh token is used up even if the response is lost", "error=invalid_request")
}

func TestTokenEndpointRefusals(t *testing.T) {
	b := start(t, "")
	invalid := is{400, "error=invalid_request", "error_description=*"}
	b.each(t, func(form string) reply { return b.call(http.MethodPost, xToken, "", formType, form) }, []row{
		{"a client is required", "grant_type=refresh_token&refresh_token=x-refresh-demo", is{401, "error=unauthorized_client"}},
		{"a token is required", "grant_type=refresh_token&client_id=c", invalid},
		{"an unknown token", "grant_type=refresh_token&client_id=c&refresh_token=x", invalid},
		{"an access token instead of a refresh token", "grant_type=refresh_token&client_id=c&refresh_token=" + demoAccess, invalid},
		{"an unsupported grant", "grant_type=password&client_id=c", is{400, "error=unsupported_grant_type"}},
	})
	for contentType, why := range map[string]string{"text/plain": "an unsupported type", jsonType: "invalid JSON"} {
		b.call(http.MethodPost, xToken, "", contentType, "grant_type=refresh_token").want(t, why, invalid...)
	}
	form := strings.NewReader("grant_type=refresh_token&refresh_token=x-refresh-demo")
	for _, client := range []struct {
		why, credentials string
		status           int
	}{{"a confidential client needs its secret", "id:", 401}, {"a confidential client", "id:secret", 200}} {
		form.Reset("grant_type=refresh_token&refresh_token=x-refresh-demo")
		b.transfer(http.MethodPost, b.http.URL+xToken, form, "Content-Type: "+formType,
			"Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(client.credentials))).want(t, client.why, client.status)
	}
}

func TestRevoke(t *testing.T) {
	b := start(t, "")
	revoke := func(token string) reply {
		return b.call(http.MethodPost, "/x/2/oauth2/revoke", "", formType, "client_id=tests&token="+token)
	}
	me := func(token string) reply { return b.call(http.MethodGet, "/x/2/users/me", token, "", "") }
	revoke(demoAccess).want(t, "an access token is revoked", 200, "revoked=true")
	me(demoAccess).want(t, "a revoked access token", 401)
	fresh := b.refresh("x-refresh-demo").want(t, "the refresh token still works", 200)
	revoke(fresh.text("refresh_token"))
	me(fresh.text("access_token")).want(t, "an access token of a revoked refresh token", 401)
	b.refresh(fresh.text("refresh_token")).want(t, "a revoked refresh token", "error=invalid_request")
	revoke("made-up").want(t, "an unknown token is not an error", 200)
	b.control(http.MethodGet, "/accounts/x/"+demoID, "", 200).want(t, "no token is left", "data.access_token=", "data.refresh_token=")
	b.control(http.MethodPut, "/accounts/x/"+demoID, "", 200).want(t, "PUT issues new tokens", "data.refresh_token=*")
}

// TestXTokensByJSON connects, renews and revokes with JSON bodies, as twitter-api-v2 does.
func TestXTokensByJSON(t *testing.T) {
	b := start(t, "")
	call := func(path, body string) reply { return b.call(http.MethodPost, "/x/2/oauth2/"+path, "", jsonType, body) }
	consent := b.page(authorizePath("scope=tweet.read+users.read+offline.access&code_challenge_method=s256"))
	consent.want(t, "the PKCE method in lower case", 302)
	back, err := url.Parse(consent.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	first := call("token", fmt.Sprintf(`{"grant_type":"authorization_code","client_id":"tests","code":%q,"code_verifier":%q,`+
		`"redirect_uri":"http://127.0.0.1/back?a=b"}`, back.Query().Get("code"), verifier)).want(t, "an exchange", 200, "refresh_token=*")
	second := call("token", fmt.Sprintf(`{"grant_type":"refresh_token","client_id":"tests","refresh_token":%q}`, first.text("refresh_token")))
	second.want(t, "a refresh", 200)
	call("revoke", fmt.Sprintf(`{"client_id":"tests","token":%q}`, second.text("access_token"))).want(t, "a revocation", "revoked=true")
}
