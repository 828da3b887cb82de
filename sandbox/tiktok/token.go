// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

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

// authorized returns the account of the request's access token and what it stands for. When the token is missing,
// unknown, expired or has none of the scopes, it answers so and returns false.
func (p *Platform) authorized(w http.ResponseWriter, r *faults.Request, scopes ...string) (state.Account, state.Bearer, bool) {
	bearer, ok := p.Store.Bearer(bearerToken(r.Request))
	account, known := p.Store.Account(bearer.Account)
	switch {
	case !ok || !known || account.Platform != Name || bearer.Expired(p.Clock.Now()):
		p.fail(w, http.StatusUnauthorized, "access_token_invalid", invalidToken)
		return state.Account{}, state.Bearer{}, false
	case !slices.ContainsFunc(scopes, bearer.Allows):
		p.fail(w, http.StatusUnauthorized, "scope_not_authorized", "The user did not authorize the scope required: "+strings.Join(scopes, " or ")+".")
		return state.Account{}, state.Bearer{}, false
	}
	return account, bearer, true
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

// token is POST /v2/oauth/token/. Any client is known here, and any secret right; but they are called client_key and
// client_secret.
func (p *Platform) token(w http.ResponseWriter, r *faults.Request) {
	values, ok := form(r)
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
	owner, ok := p.Store.RefreshOwner(refresh)
	if !ok || owner.Platform != Name {
		p.oauthFail(w, http.StatusBadRequest, "invalid_grant", invalidGrant)
		return
	}
	tokens, ok, err := p.Store.Rotate(refresh, p.Terms)
	switch {
	case err != nil:
		p.Logger.Error("a token could not be kept", "platform", Name, "account", owner.ID, "error", err)
		p.oauthFail(w, http.StatusInternalServerError, "server_error", "Something is wrong. Please try again later.")
	case !ok:
		p.oauthFail(w, http.StatusBadRequest, "invalid_grant", invalidGrant)
	default:
		w.Header().Set("Cache-Control", "no-store")
		writeJSON(w, http.StatusOK, tokenAnswer{
			AccessToken: tokens.Access, ExpiresIn: p.seconds(tokens.ExpiresAt), OpenID: owner.ID,
			RefreshExpiresIn: p.seconds(tokens.RefreshExpiresAt), RefreshToken: tokens.Refresh,
			Scope: strings.Join(tokens.Scopes, ","), TokenType: "Bearer",
		})
	}
}

// seconds is how long it is until then.
func (p *Platform) seconds(until time.Time) int64 {
	return int64(until.Sub(p.Clock.Now()).Round(time.Second) / time.Second)
}
