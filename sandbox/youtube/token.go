// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
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

// authorized returns the account of the request's access token, which must have one of the scopes.
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

// tokenAnswer is the token endpoint's response. It contains a refresh token only in exchange for a code, because
// refresh tokens do not rotate.
type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope"`
	TokenType    string `json:"token_type"`
}

// token handles POST /token. It accepts any client id and any secret.
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
	case values.Get("grant_type") == "authorization_code":
		p.exchange(w, id, values)
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
		tokens.Refresh = ""
		p.writeTokens(w, tokens)
	}
}

func (p *Platform) writeTokens(w http.ResponseWriter, tokens state.Tokens) {
	writeJSON(w, http.StatusOK, tokenAnswer{
		AccessToken: tokens.Access, RefreshToken: tokens.Refresh, Scope: strings.Join(tokens.Scopes, " "), TokenType: "Bearer",
		ExpiresIn: p.Seconds(tokens.ExpiresAt),
	})
}

// codeLife is the lifetime of authorization codes. Google does not document it; clients report ten minutes.
const codeLife = 10 * time.Minute

// newDialog returns the handler of GET /o/oauth2/v2/auth ("Using OAuth 2.0 for Web Server Applications").
func newDialog(opts simulator.Options) *oauth.Dialog {
	return oauth.NewDialog(&oauth.Dialog{
		Options: opts, Profile: profile, ClientParam: "client_id", CodeLife: codeLife,
		Check: func(query url.Values) string {
			switch {
			case query.Get("response_type") == "":
				return "Required parameter is missing: response_type"
			case query.Get("scope") == "":
				return "Missing required parameter: scope"
			default:
				return ""
			}
		},
	})
}

// exchange exchanges an authorization code for tokens. It issues a refresh token only if the client asked for offline
// access.
func (p *Platform) exchange(w http.ResponseWriter, client string, values url.Values) {
	granted, ok := p.dialog.Redeem(values.Get("code"), client, values.Get("redirect_uri"))
	if !ok {
		oauthFail(w, http.StatusBadRequest, "invalid_grant", "Malformed auth code.")
		return
	}
	if !granted.Verified(values.Get("code_verifier"), oauth.Base64URL) {
		oauthFail(w, http.StatusBadRequest, "invalid_grant", "Invalid code verifier.")
		return
	}
	tokens, err := p.dialog.Tokens(granted, 0, granted.Asked.Get("access_type") == "offline")
	if err != nil {
		oauthFail(w, http.StatusInternalServerError, "internal_failure", "Internal error encountered.")
		return
	}
	p.writeTokens(w, tokens)
}
