// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
)

const (
	// codeTTL is the lifetime of X's authorization codes.
	codeTTL = 30 * time.Second
	// maxStateLength is the maximum length of the state parameter.
	maxStateLength = 500
)

// newDialog returns the handler of GET /i/oauth2/authorize.
func newDialog(opts simulator.Options) *oauth.Dialog {
	return oauth.NewDialog(&oauth.Dialog{
		Options: opts, Profile: profile, ClientParam: "client_id", CodeLife: codeTTL, Check: checkAuthorize,
	})
}

// checkAuthorize returns a message for an authorization request that X would reject, or "". The PKCE method may also be
// in lower case: twitter-api-v2 sends s256 in production.
func checkAuthorize(query url.Values) string {
	method := query.Get("code_challenge_method")
	switch {
	case query.Get("response_type") != "code":
		return "The response_type must be code."
	case query.Get("state") == "" || len(query.Get("state")) > maxStateLength:
		return "The state must be there, with at most 500 characters."
	case query.Get("code_challenge") == "" || !strings.EqualFold(method, "S256") && method != "plain":
		return "PKCE is mandatory: give code_challenge, and S256 or plain as code_challenge_method."
	case query.Get("scope") == "":
		return "The scope is missing."
	}
	for scope := range strings.FieldsSeq(query.Get("scope")) {
		if !slices.Contains(allScopes(), scope) {
			return "The scope " + scope + " is not known; scopes are separated by spaces."
		}
	}
	return ""
}

// exchange exchanges an authorization code for tokens.
func (p *Platform) exchange(w http.ResponseWriter, clientID string, values url.Values) {
	granted, ok := p.dialog.Redeem(values.Get("code"), clientID, values.Get("redirect_uri"))
	if !ok {
		oauthFail(w, http.StatusBadRequest, badGrant, "Value passed for the authorization code was invalid.")
		return
	}
	if !granted.Verified(values.Get("code_verifier"), oauth.Base64URL) {
		oauthFail(w, http.StatusBadRequest, badGrant, "Value passed for the code verifier did not match the code challenge.")
		return
	}
	tokens, err := p.dialog.Tokens(granted, 0, slices.Contains(granted.Scopes, scopeOffline))
	if err != nil {
		oauthFail(w, http.StatusInternalServerError, "server_error", "Something is broken.")
		return
	}
	p.writeTokens(w, tokens)
}
