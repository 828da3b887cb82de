// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
)

// app is a registered app. Apps are kept in memory: a restart loses them.
type app struct {
	ID, Name, Secret string
	Redirects        []string
	Scopes           []string
}

// registerApp is POST /api/v1/apps. Anyone may register one.
func (p *Platform) registerApp(w http.ResponseWriter, r *faults.Request) {
	q, ok := readParams(r)
	if !ok {
		p.fail(w, badBody())
		return
	}
	name, website := q.text("client_name"), q.text("website")
	made := app{Name: name, ID: rand.Text(), Secret: rand.Text(), Scopes: strings.Fields(q.text("scopes"))}
	made.Redirects = append(q.list("redirect_uris"), strings.Fields(q.text("redirect_uris"))...)
	if len(made.Scopes) == 0 {
		made.Scopes = []string{"read"}
	}
	with := p.checked(q)
	switch {
	case with != nil:
	case name == "":
		with = notValid("Application name can't be blank")
	case len(made.Redirects) == 0 || slices.ContainsFunc(made.Redirects, func(uri string) bool { return !strings.Contains(uri, ":") }):
		with = notValid("Redirect URI must be an absolute URI.")
	case website != "" && !simulator.IsAddress(website):
		with = notValid("Website is not a valid URL")
	}
	if with != nil {
		p.fail(w, with)
		return
	}
	p.mu.Lock()
	p.apps[made.ID] = made
	number := len(p.apps)
	p.mu.Unlock()
	p.write(w, http.StatusOK, map[string]any{
		"id": fmt.Sprint(number), "name": name, "website": website, "scopes": made.Scopes, "redirect_uri": strings.Join(made.Redirects, "\n"),
		"redirect_uris": made.Redirects, "client_id": made.ID, "client_secret": made.Secret, "client_secret_expires_at": 0,
	})
}

// verifyApp is GET /api/v1/apps/verify_credentials. The sandbox does not record which app a token belongs to.
func (p *Platform) verifyApp(w http.ResponseWriter, r *faults.Request) {
	if _, _, ok := p.Authorized(r, Name); !ok {
		p.fail(w, problemFor(http.StatusUnauthorized))
		return
	}
	p.write(w, http.StatusOK, map[string]any{"name": "sandbox", "website": nil, "scopes": []string{"read", "write"}})
}

// codeLife is how long an authorization code is valid (config/initializers/doorkeeper.rb).
const codeLife = 10 * time.Minute

func newDialog(opts simulator.Options) *oauth.Dialog {
	return oauth.NewDialog(&oauth.Dialog{Options: opts, Profile: profile, ClientParam: "client_id", CodeLife: codeLife})
}

// token is POST /oauth/token (methods/oauth).
func (p *Platform) token(w http.ResponseWriter, r *faults.Request) {
	q, ok := readParams(r)
	if !ok {
		oauthFail(w, "invalid_request", "Missing required parameter: grant_type.")
		return
	}
	p.mu.Lock()
	client, known := p.apps[q.text("client_id")]
	p.mu.Unlock()
	switch {
	case !known || q.text("client_secret") != client.Secret:
		oauthFail(w, "invalid_client", "Client authentication failed due to unknown client, no client authentication included, or unsupported authentication method.")
	case q.text("grant_type") != "authorization_code":
		oauthFail(w, "unsupported_grant_type", "The authorization grant type is not supported by the authorization server.")
	default:
		p.exchange(w, client, q.values)
	}
}

func (p *Platform) exchange(w http.ResponseWriter, client app, form url.Values) {
	granted, ok := p.dialog.Redeem(form.Get("code"), client.ID, form.Get("redirect_uri"))
	if !ok || !granted.Verified(form.Get("code_verifier"), oauth.Base64URL) {
		oauthFail(w, "invalid_grant", "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI used in the authorization request, or was issued to another client.")
		return
	}
	tokens, err := p.dialog.Tokens(granted, 0, false)
	if err != nil {
		p.fail(w, problemFor(http.StatusInternalServerError))
		return
	}
	p.write(w, http.StatusOK, map[string]any{
		"access_token": tokens.Access, "token_type": "Bearer", "scope": strings.Join(granted.Scopes, " "), "created_at": p.Clock.Now().Unix(),
	})
}

// revoke is POST /oauth/revoke.
func (p *Platform) revoke(w http.ResponseWriter, r *faults.Request) {
	q, _ := readParams(r)
	if with := p.broken("a token could not be revoked", "", p.Store.Revoke(q.text("token"))); with != nil {
		p.fail(w, with)
		return
	}
	p.write(w, http.StatusOK, map[string]any{})
}

// oauthFail responds with an error as in RFC 6749, section 5.2.
func oauthFail(w http.ResponseWriter, code, description string) {
	status := http.StatusBadRequest
	if code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	simulator.WriteJSON(w, status, "application/json; charset=utf-8", map[string]string{"error": code, "error_description": description})
}
