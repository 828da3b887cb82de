// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/http"
	"slices"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// authorized returns the account of the request's access token, which must have been granted one of the scopes.
func (p *Platform) authorized(r *faults.Request, scopes ...string) (state.Account, *problem) {
	account, bearer, ok := p.Authorized(r, Name)
	if !ok {
		return account, badCredentials()
	}
	if !slices.ContainsFunc(scopes, bearer.Allows) {
		return account, refuse(http.StatusForbidden, "PERMISSION_DENIED", "global", "insufficientPermissions",
			"Request had insufficient authentication scopes.")
	}
	return account, nil
}

// tokenAnswer is what the token endpoint gives for a refresh token: no new one.
type tokenAnswer struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`
	TokenType   string `json:"token_type"`
}

// token is POST /token. Any client is known here, and any secret is right.
func (p *Platform) token(w http.ResponseWriter, r *faults.Request) {
	values, ok := simulator.ReadForm(r)
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = values.Get("client_id"), values.Get("client_secret")
	}
	refresh := values.Get("refresh_token")
	switch {
	case !ok:
		oauthFail(w, http.StatusBadRequest, "invalid_request", "Invalid content type.")
	case id == "":
		oauthFail(w, http.StatusBadRequest, "invalid_request", "Could not determine client ID from request.")
	case secret == "":
		oauthFail(w, http.StatusBadRequest, "invalid_request", "client_secret is missing.")
	case values.Get("grant_type") != "refresh_token":
		oauthFail(w, http.StatusBadRequest, "unsupported_grant_type", "Invalid grant_type: "+values.Get("grant_type"))
	case refresh == "":
		oauthFail(w, http.StatusBadRequest, "invalid_request", "Missing required parameter: refresh_token")
	default:
		p.renew(w, refresh)
	}
}

func (p *Platform) renew(w http.ResponseWriter, refresh string) {
	tokens, _, ok, err := p.Rotate(profile, refresh)
	switch {
	case err != nil:
		oauthFail(w, http.StatusInternalServerError, "internal_failure", "Internal error encountered.")
	case !ok:
		oauthFail(w, http.StatusBadRequest, "invalid_grant", invalidGrant)
	default:
		writeJSON(w, http.StatusOK, tokenAnswer{
			AccessToken: tokens.Access, Scope: strings.Join(tokens.Scopes, " "), TokenType: "Bearer",
			ExpiresIn: p.Seconds(tokens.ExpiresAt),
		})
	}
}
