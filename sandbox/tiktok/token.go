// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// authorized returns the account and the bearer of the request's access token. If the token is missing, unknown or
// expired, or has none of the scopes, it responds with an error and returns false.
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

// tokenAnswer is the token endpoint's response.
type tokenAnswer struct {
	AccessToken      string `json:"access_token"`
	ExpiresIn        int64  `json:"expires_in"`
	OpenID           string `json:"open_id"`
	RefreshExpiresIn int64  `json:"refresh_expires_in"`
	RefreshToken     string `json:"refresh_token"`
	Scope            string `json:"scope"`
	TokenType        string `json:"token_type"`
}

// token handles POST /v2/oauth/token/. It accepts any client_key and any client_secret.
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
	case values.Get("grant_type") == "authorization_code":
		p.exchange(w, values)
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
		p.writeTokens(w, tokens, owner)
	}
}

func (p *Platform) writeTokens(w http.ResponseWriter, tokens state.Tokens, owner state.Key) {
	w.Header().Set("Cache-Control", "no-store")
	simulator.WriteJSON(w, http.StatusOK, jsonType, tokenAnswer{
		AccessToken: tokens.Access, ExpiresIn: p.Seconds(tokens.ExpiresAt), OpenID: owner.ID,
		RefreshExpiresIn: p.Seconds(tokens.RefreshExpiresAt), RefreshToken: tokens.Refresh,
		Scope: strings.Join(tokens.Scopes, ","), TokenType: "Bearer",
	})
}

// codeLife is the lifetime of authorization codes. TikTok does not document it.
const codeLife = 10 * time.Minute

// newDialog returns the handler of GET /v2/auth/authorize/ ("Login Kit for Web").
func newDialog(opts simulator.Options) *oauth.Dialog {
	return oauth.NewDialog(&oauth.Dialog{Options: opts, Profile: profile, ClientParam: "client_key", CodeLife: codeLife})
}

// exchange exchanges an authorization code for tokens. The challenge is the hash in hexadecimal ("Login Kit for
// Desktop"), not in the standard's encoding.
func (p *Platform) exchange(w http.ResponseWriter, values url.Values) {
	granted, ok := p.dialog.Redeem(values.Get("code"), values.Get("client_key"), values.Get("redirect_uri"))
	if !ok {
		p.oauthFail(w, http.StatusBadRequest, "invalid_grant", "Authorization code is expired.")
		return
	}
	if !granted.Verified(values.Get("code_verifier"), hex.EncodeToString) {
		p.oauthFail(w, http.StatusBadRequest, "invalid_request", "Code verifier or code challenge is invalid.")
		return
	}
	tokens, err := p.dialog.Tokens(granted, 0, true)
	if err != nil {
		p.oauthFail(w, http.StatusInternalServerError, "server_error", "Something is wrong. Please try again later.")
		return
	}
	p.writeTokens(w, tokens, granted.Account.Key)
}
