// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// bearerToken returns the token of the Authorization header, or "".
func bearerToken(r *http.Request) string {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// bearerAccount tells whose access token a request carries, also when it has expired.
func (p *Platform) bearerAccount(r *faults.Request) string {
	bearer, ok := p.Store.Bearer(bearerToken(r.Request))
	if !ok || bearer.Account.Platform != Name {
		return ""
	}
	return bearer.Account.ID
}

// authorized returns the account of the request's access token, which must have been granted one of the scopes.
func (p *Platform) authorized(r *faults.Request, scopes ...string) (state.Account, *problem) {
	bearer, ok := p.Store.Bearer(bearerToken(r.Request))
	account, known := p.Store.Account(bearer.Account)
	if !ok || !known || account.Platform != Name || bearer.Expired(p.Clock.Now()) {
		with := badCredentials()
		return state.Account{}, &with
	}
	if slices.ContainsFunc(scopes, bearer.Allows) {
		return account, nil
	}
	with := refuse(http.StatusForbidden, "PERMISSION_DENIED", "global", "insufficientPermissions",
		"Request had insufficient authentication scopes.")
	return state.Account{}, &with
}

// form reads a form body; ok is false when it is none.
func form(r *faults.Request) (values url.Values, ok bool) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, false
	}
	values, err = url.ParseQuery(string(r.Content))
	return values, err == nil
}

// formAccount tells whose refresh token a request carries.
func (p *Platform) formAccount(r *faults.Request) string {
	values, _ := form(r)
	if owner, ok := p.Store.RefreshOwner(values.Get("refresh_token")); ok && owner.Platform == Name {
		return owner.ID
	}
	return ""
}

// tokenAnswer is what the token endpoint gives for a refresh token: no new one.
type tokenAnswer struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`
	TokenType   string `json:"token_type"`
}

// token is POST /token. Any client is known here, and any secret right.
func (p *Platform) token(w http.ResponseWriter, r *faults.Request) {
	values, ok := form(r)
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = values.Get("client_id"), values.Get("client_secret")
	}
	refresh := values.Get("refresh_token")
	owner, known := p.Store.RefreshOwner(refresh)
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
	case !known || owner.Platform != Name:
		oauthFail(w, http.StatusBadRequest, "invalid_grant", invalidGrant)
	default:
		p.renew(w, refresh)
	}
}

func (p *Platform) renew(w http.ResponseWriter, refresh string) {
	tokens, ok, err := p.Store.Rotate(refresh, p.Terms)
	switch {
	case err != nil:
		p.Logger.Error("a token could not be kept", "platform", Name, "error", err)
		oauthFail(w, http.StatusInternalServerError, "internal_failure", "Internal error encountered.")
	case !ok:
		oauthFail(w, http.StatusBadRequest, "invalid_grant", invalidGrant)
	default:
		writeJSON(w, http.StatusOK, tokenAnswer{
			AccessToken: tokens.Access, Scope: strings.Join(tokens.Scopes, " "), TokenType: "Bearer",
			ExpiresIn: int64(tokens.ExpiresAt.Sub(p.Clock.Now()).Round(time.Second) / time.Second),
		})
	}
}
