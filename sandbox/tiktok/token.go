// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"slices"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// authorized returns the account of the request's access token and what it stands for. When the token is missing,
// unknown, expired or has none of the scopes, it answers so and returns false.
func (p *Platform) authorized(w http.ResponseWriter, r *faults.Request, scopes ...string) (state.Account, state.Bearer, bool) {
	account, bearer, ok := p.Authorized(r, Name)
	switch {
	case !ok:
		p.fail(w, http.StatusUnauthorized, "access_token_invalid", invalidToken)
		return state.Account{}, state.Bearer{}, false
	case !slices.ContainsFunc(scopes, bearer.Allows):
		p.fail(w, http.StatusUnauthorized, "scope_not_authorized", "The user did not authorize the scope required: "+strings.Join(scopes, " or ")+".")
		return state.Account{}, state.Bearer{}, false
	}
	return account, bearer, true
}

// tokenAnswer is what the token endpoint gives.
type tokenAnswer struct {
	AccessToken      string `json:"access_token"`
	ExpiresIn        int64  `json:"expires_in"`
	OpenID           string `json:"open_id"`
	RefreshExpiresIn int64  `json:"refresh_expires_in"`
	RefreshToken     string `json:"refresh_token"`
	Scope            string `json:"scope"`
	TokenType        string `json:"token_type"`
}

// token is POST /v2/oauth/token/. Any client is known here, and any secret is right. They are called client_key and
// client_secret.
func (p *Platform) token(w http.ResponseWriter, r *faults.Request) {
	values, ok := simulator.ReadForm(r)
	if !ok {
		p.oauthFail(w, http.StatusBadRequest, "invalid_request", "Only `application/x-www-form-urlencoded` is supported as Content-Type.")
		return
	}
	for name, all := range values {
		if len(all) > 1 {
			p.oauthFail(w, http.StatusBadRequest, "invalid_request", "The parameter "+name+" was given more than once.")
			return
		}
	}
	switch {
	case values.Get("client_key") == "" || values.Get("client_secret") == "":
		p.oauthFail(w, http.StatusUnauthorized, "invalid_client", "Client key or secret is incorrect.")
	case values.Get("grant_type") != "refresh_token":
		p.oauthFail(w, http.StatusBadRequest, "unsupported_grant_type", "The grant_type is not supported by the server.")
	case values.Get("refresh_token") == "":
		p.oauthFail(w, http.StatusBadRequest, "invalid_request", "The request parameters are malformed.")
	default:
		p.rotate(w, values.Get("refresh_token"))
	}
}

func (p *Platform) rotate(w http.ResponseWriter, refresh string) {
	tokens, owner, ok, err := p.Rotate(profile, refresh)
	switch {
	case err != nil:
		p.oauthFail(w, http.StatusInternalServerError, "server_error", "Something is wrong. Please try again later.")
	case !ok:
		p.oauthFail(w, http.StatusBadRequest, "invalid_grant", invalidGrant)
	default:
		w.Header().Set("Cache-Control", "no-store")
		simulator.WriteJSON(w, http.StatusOK, jsonType, tokenAnswer{
			AccessToken: tokens.Access, ExpiresIn: p.Seconds(tokens.ExpiresAt), OpenID: owner.ID,
			RefreshExpiresIn: p.Seconds(tokens.RefreshExpiresAt), RefreshToken: tokens.Refresh,
			Scope: strings.Join(tokens.Scopes, ","), TokenType: "Bearer",
		})
	}
}
