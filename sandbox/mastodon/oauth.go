// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
)

// codeLife is how long an authorization code is valid (config/initializers/doorkeeper.rb).
const codeLife = 10 * time.Minute

func (p *Platform) newDialog() *oauth.Dialog {
	return oauth.NewDialog(&oauth.Dialog{
		Options: p.Options, Profile: profile, ClientParam: "client_id", CodeLife: codeLife, Check: p.checkAuthorize,
		ClientName: func(id string) string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.apps[id].Name
		},
	})
}

// checkAuthorize returns a message for an authorization request that Mastodon would reject, or "".
func (p *Platform) checkAuthorize(query url.Values) string {
	p.mu.Lock()
	client, known := p.apps[query.Get("client_id")]
	p.mu.Unlock()
	switch {
	case !known:
		return "Client authentication failed due to unknown client, no client authentication included, or unsupported authentication method."
	case !slices.Contains(client.Redirects, query.Get("redirect_uri")):
		return "The requested redirect uri is malformed or doesn't match client redirect URI."
	case query.Has("code_challenge") && query.Get("code_challenge_method") != "S256":
		return "The code_challenge_method must be S256."
	}
	for scope := range strings.FieldsSeq(query.Get("scope")) {
		if !client.allows(scope) {
			return "The requested scope is invalid, unknown, or malformed."
		}
	}
	return ""
}

// metadata handles GET /.well-known/oauth-authorization-server (RFC 8414), which Mastodon has had since version 4.3.
func (p *Platform) metadata(w http.ResponseWriter, r *faults.Request) {
	at := p.SiteURL(r.Request) + "/mastodon"
	p.write(w, http.StatusOK, map[string]any{
		"issuer": at + "/", "service_documentation": "https://docs.joinmastodon.org/", "authorization_endpoint": at + "/oauth/authorize",
		"token_endpoint": at + "/oauth/token", "app_registration_endpoint": at + "/api/v1/apps", "revocation_endpoint": at + "/oauth/revoke",
		"scopes_supported": []string{"read", "read:accounts", "read:statuses", "write", "write:media", "write:statuses"}, "response_types_supported": []string{"code"},
		"response_modes_supported": []string{"query", "fragment", "form_post"}, "grant_types_supported": []string{"authorization_code", "client_credentials"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"}, "code_challenge_methods_supported": []string{"S256"},
	})
}

// token handles POST /oauth/token (methods/oauth).
func (p *Platform) token(w http.ResponseWriter, r *faults.Request) {
	q, ok := readParams(r)
	if !ok {
		oauthFail(w, "invalid_request", "Missing required parameter: grant_type.")
		return
	}
	client, known := p.appOf(q)
	switch grant := q.text("grant_type"); {
	case !known:
		oauthFail(w, "invalid_client", "Client authentication failed due to unknown client, no client authentication included, or unsupported authentication method.")
	case grant == "client_credentials":
		p.appToken(w, &client, q)
	case grant != "authorization_code":
		oauthFail(w, "unsupported_grant_type", "The authorization grant type is not supported by the authorization server.")
	default:
		p.exchange(w, &client, q.values)
	}
}

// appToken issues a token for the app itself. The sandbox has no endpoints for it.
func (p *Platform) appToken(w http.ResponseWriter, client *app, q *params) {
	for scope := range strings.FieldsSeq(q.text("scope")) {
		if !client.allows(scope) {
			oauthFail(w, "invalid_scope", "The requested scope is invalid, unknown, or malformed.")
			return
		}
	}
	p.writeToken(w, rand.Text(), q.text("scope"))
}

func (p *Platform) writeToken(w http.ResponseWriter, token, scopes string) {
	p.write(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "scope": scopes, "created_at": p.Clock.Now().Unix()})
}

// issue identifies a token: an app has one token per account and set of scopes, which each exchange returns until it is
// revoked (config/initializers/doorkeeper.rb, reuse_access_token).
type issue struct {
	app, account, scopes string
}

func (p *Platform) exchange(w http.ResponseWriter, client *app, form url.Values) {
	granted, ok := p.dialog.Redeem(form.Get("code"), client.ID, form.Get("redirect_uri"))
	if !ok || !granted.Verified(form.Get("code_verifier"), oauth.Base64URL) {
		oauthFail(w, "invalid_grant", "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI used in the authorization request, or was issued to another client.")
		return
	}
	of := issue{client.ID, granted.Account.ID, strings.Join(granted.Scopes, " ")}
	p.mu.Lock()
	defer p.mu.Unlock()
	if bearer, valid := p.Store.Bearer(p.issued[of]); !valid || bearer.Expired(p.Clock.Now()) {
		tokens, err := p.dialog.Tokens(granted, 0, false)
		if err != nil {
			p.fail(w, problemFor(http.StatusInternalServerError))
			return
		}
		p.issued[of] = tokens.Access
	}
	p.writeToken(w, p.issued[of], of.scopes)
}

// revoke handles POST /oauth/revoke. An app can revoke only its own tokens.
func (p *Platform) revoke(w http.ResponseWriter, r *faults.Request) {
	q, _ := readParams(r)
	client, known := p.appOf(q)
	token := q.text("token")
	if _, exists := p.Store.Bearer(token); !known || exists && !p.issuedTo(client.ID, token) {
		simulator.WriteJSON(w, http.StatusForbidden, "application/json; charset=utf-8", map[string]string{
			"error": "unauthorized_client", "error_description": "You are not authorized to revoke this token",
		})
		return
	}
	if with := p.broken("a token could not be revoked", "", p.Store.Revoke(token)); with != nil {
		p.fail(w, with)
		return
	}
	p.write(w, http.StatusOK, map[string]any{})
}

func (p *Platform) issuedTo(client, token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for of, issued := range p.issued {
		if of.app == client && issued == token {
			return true
		}
	}
	return false
}

// oauthFail responds with an error as in RFC 6749, section 5.2.
func oauthFail(w http.ResponseWriter, code, description string) {
	status := http.StatusBadRequest
	if code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	simulator.WriteJSON(w, status, "application/json; charset=utf-8", map[string]string{"error": code, "error_description": description})
}
