// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// tokenAnswer is the token endpoint's response.
type tokenAnswer struct {
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"`
	AccessToken  string `json:"access_token"`
	Scope        string `json:"scope"`
	RefreshToken string `json:"refresh_token,omitempty"`
}

// X responds to an invalid token or code with invalid_request, where the standard requires invalid_grant
// (plhery/node-twitter-api-v2#496). badToken is its description for a refresh token.
const (
	badGrant = "invalid_request"
	badToken = "Value passed for the token was invalid."
)

// oauthFail responds with an error as in RFC 6749, section 5.2.
func oauthFail(w http.ResponseWriter, status int, code, description string) {
	w.Header().Set("Cache-Control", "no-store")
	simulator.WriteJSON(w, status, "application/json; charset=utf-8", map[string]string{
		"error": code, "error_description": description,
	})
}

// client reads the body, a form or JSON (which twitter-api-v2 sends), and returns the client's id: from HTTP Basic for
// a confidential client, from client_id in the body for a public one. It accepts any client id and any secret. If there
// is no client id, it responds with an error and returns false.
func client(w http.ResponseWriter, r *faults.Request) (values url.Values, id string, ok bool) {
	if values, ok = simulator.ReadFormOrJSON(r); !ok {
		oauthFail(w, http.StatusBadRequest, "invalid_request", "The body must be application/x-www-form-urlencoded or application/json.")
		return nil, "", false
	}
	if id, secret, basic := r.BasicAuth(); basic {
		if id == "" || secret == "" {
			oauthFail(w, http.StatusUnauthorized, "unauthorized_client", "Missing valid authorization header")
			return nil, "", false
		}
		return values, id, true
	}
	if r.Header.Get("Authorization") != "" || values.Get("client_id") == "" {
		oauthFail(w, http.StatusUnauthorized, "unauthorized_client", "Missing valid authorization header")
		return nil, "", false
	}
	return values, values.Get("client_id"), true
}

// token handles POST /2/oauth2/token.
func (p *Platform) token(w http.ResponseWriter, r *faults.Request) {
	p.rateHeaders(w, callToken, false)
	values, clientID, ok := client(w, r)
	if !ok {
		return
	}
	switch values.Get("grant_type") {
	case "refresh_token":
		p.refresh(w, values.Get("refresh_token"))
	case "authorization_code":
		p.exchange(w, clientID, values)
	default:
		oauthFail(w, http.StatusBadRequest, "unsupported_grant_type",
			"The grant_type must be refresh_token or authorization_code.")
	}
}

func (p *Platform) refresh(w http.ResponseWriter, refresh string) {
	if refresh == "" {
		oauthFail(w, http.StatusBadRequest, "invalid_request", "Missing required parameter [refresh_token].")
		return
	}
	tokens, _, ok, err := p.Rotate(profile, refresh)
	switch {
	case err != nil:
		oauthFail(w, http.StatusInternalServerError, "server_error", "Something is broken.")
	case !ok:
		oauthFail(w, http.StatusBadRequest, badGrant, badToken)
	default:
		p.writeTokens(w, tokens)
	}
}

func (p *Platform) writeTokens(w http.ResponseWriter, tokens state.Tokens) {
	w.Header().Set("Cache-Control", "no-store")
	p.succeed(w, callToken, http.StatusOK, tokenAnswer{
		TokenType: "bearer", AccessToken: tokens.Access, RefreshToken: tokens.Refresh,
		ExpiresIn: p.Seconds(tokens.ExpiresAt), Scope: strings.Join(tokens.Scopes, " "),
	})
}

// revoke handles POST /2/oauth2/revoke.
func (p *Platform) revoke(w http.ResponseWriter, r *faults.Request) {
	p.rateHeaders(w, callRevoke, false)
	values, _, ok := client(w, r)
	if !ok {
		return
	}
	token := values.Get("token")
	if token == "" {
		oauthFail(w, http.StatusBadRequest, "invalid_request", "Missing required parameter [token].")
		return
	}
	if err := p.Store.Revoke(token); err != nil {
		p.Logger.Error("a revocation could not be kept", "platform", Name, "error", err)
		oauthFail(w, http.StatusInternalServerError, "server_error", "Something is broken.")
		return
	}
	p.succeed(w, callRevoke, http.StatusOK, map[string]bool{"revoked": true})
}
