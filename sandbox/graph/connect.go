// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"net/http"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/state"
)

// OpExchange is the exchange or inspection of codes and tokens. It has no name in faults; only `*` matches it.
const OpExchange faults.Operation = "exchange"

const (
	// codeLife is the authorization code lifetime. Meta does not document it; its pages mention an hour.
	codeLife = time.Hour
	// shortLife is the lifetime of tokens issued for codes: Threads and Instagram document an hour, Facebook one to two.
	shortLife = time.Hour
	// dataAccess is how long a token can access its user's data: 90 days.
	dataAccess = 90 * 24 * time.Hour
)

// NewDialog creates the consent page. offers selects the accounts that can be chosen; nil means all.
func (a *API) NewDialog(offers func(state.Account) bool) *oauth.Dialog {
	return oauth.NewDialog(&oauth.Dialog{
		Options: a.Options, Profile: a.Profile, ClientParam: "client_id", CodeLife: codeLife, Fragment: "_", Offers: offers,
	})
}

// ExchangeCode returns the handler of POST /oauth/access_token on Threads and Instagram, on hosts with a different
// error format. It accepts every client ID and secret. answer returns the platform's fields in addition to the token.
func (a *API) ExchangeCode(dialog *oauth.Dialog, answer func(oauth.Grant) map[string]any) Handler {
	return func(c *Call) (any, *Error) {
		client, secret := c.Params.Required("client_id"), c.Params.Required("client_secret")
		code, redirect := c.Params.Required("code"), c.Params.Required("redirect_uri")
		if kind := c.Params.Required("grant_type"); client == "" || secret == "" || kind != "authorization_code" {
			return nil, flat("Missing required field, or invalid grant_type")
		}
		if bad := c.Params.Validate(); bad != nil {
			return nil, flat(bad.Message)
		}
		// The redirect URI's fragment is not part of the code.
		granted, ok := dialog.Redeem(strings.TrimSuffix(code, "#_"), client, redirect)
		if !ok {
			return nil, flat("Matching code was not found or was already used")
		}
		tokens, err := dialog.Tokens(granted, shortLife, false)
		if err != nil {
			return nil, c.InternalError("keep a token", err)
		}
		body := answer(granted)
		body["access_token"] = tokens.Access
		return body, nil
	}
}

// flat returns an error in the code exchange hosts' format: {"error_type", "code", "error_message"} (the pages "Get Access Tokens" of
// Threads and "Business Login for Instagram").
func flat(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: typeOAuth, Code: http.StatusBadRequest, Message: message, flat: true}
}

// Lengthen returns the handler of GET /access_token. It exchanges a short-lived token for a long-lived one.
func (a *API) Lengthen(grantType, scope string) Handler {
	return func(c *Call) (any, *Error) {
		if _, bad := c.Account(scope); bad != nil {
			return nil, bad
		}
		c.Params.Required("grant_type")
		c.Params.OneOf("grant_type", grantType)
		c.Params.Required("client_secret")
		if bad := c.Params.Validate(); bad != nil {
			return nil, bad
		}
		return c.renew(a.Terms)
	}
}

// renew exchanges the call's token for a new one.
func (c *Call) renew(terms func(state.Account) state.Terms) (any, *Error) {
	token, _, bad := c.token()
	if bad != nil {
		return nil, bad
	}
	fresh, ok, err := c.api.Store.Renew(token, terms)
	switch {
	case err != nil:
		return nil, c.InternalError("renew a token", err)
	case !ok:
		return nil, unknownToken()
	}
	return tokenAnswer(c.api, fresh), nil
}

// tokenAnswer returns a token response. It omits expires_in for a token without an expiry.
func tokenAnswer(a *API, t state.Tokens) map[string]any {
	out := map[string]any{"access_token": t.Access, "token_type": "bearer"}
	if !t.ExpiresAt.IsZero() {
		out["expires_in"] = a.Seconds(t.ExpiresAt)
	}
	return out
}

// RegisterFacebookLogin adds Facebook Login's endpoints below a base path, for api.Handle: the dialog, the exchange of
// codes and tokens, and token inspection (Meta's documentation, "Manually Build a Login Flow", "Long-Lived Access
// Tokens" and "Debug Token"). On the platform, the dialog is on a separate host with other paths.
func (a *API) RegisterFacebookLogin(api *http.ServeMux, base string, dialog *oauth.Dialog) {
	exchange, inspect := a.Route(OpExchange, a.facebookToken(dialog)), a.Route(OpExchange, a.Inspect)
	permissions := a.Route(OpExchange, a.permissions)
	for _, prefix := range []string{base + "/{version}", base} {
		api.Handle("GET "+prefix+"/dialog/oauth", dialog)
		api.Handle("GET "+prefix+"/oauth/access_token", exchange)
		api.Handle("POST "+prefix+"/oauth/access_token", exchange)
		api.Handle("GET "+prefix+"/debug_token", inspect)
		api.Handle("GET "+prefix+"/me/permissions", permissions)
	}
}

// facebookToken returns the handler of Facebook Login's GET or POST /oauth/access_token.
func (a *API) facebookToken(dialog *oauth.Dialog) Handler {
	return func(c *Call) (any, *Error) {
		q := c.Params
		client, secret := q.Required("client_id"), q.Required("client_secret")
		kind := q.OneOf("grant_type", "authorization_code", "fb_exchange_token", "client_credentials")
		code, redirect, old := q.Text("code"), q.Text("redirect_uri"), q.Text("fb_exchange_token")
		if bad := q.Validate(); bad != nil {
			return nil, bad
		}
		switch kind {
		case "client_credentials":
			return map[string]string{"access_token": client + "|" + secret, "token_type": "bearer"}, nil
		case "fb_exchange_token":
			q.values[tokenParam] = old
			return c.renew(func(account state.Account) state.Terms {
				terms := a.Terms(account)
				if terms.Access == 0 {
					terms.Access = LongLife
				}
				return terms
			})
		}
		granted, ok := dialog.Redeem(strings.TrimSuffix(code, "#_"), client, redirect)
		if !ok {
			used := Refusal(100, "This authorization code has been used.")
			used.Subcode = 36009
			return nil, used
		}
		tokens, err := dialog.Tokens(granted, shortLife, false)
		if err != nil {
			return nil, c.InternalError("keep a token", err)
		}
		return tokenAnswer(a, tokens), nil
	}
}

// permissions handles GET /me/permissions. It returns only the granted permissions; declined ones are not stored.
func (*API) permissions(c *Call) (any, *Error) {
	_, bearer, bad := c.token()
	if bad != nil {
		return nil, bad
	}
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	granted := make([]map[string]string, 0, len(bearer.Scopes))
	for _, scope := range bearer.Scopes {
		granted = append(granted, map[string]string{"permission": scope, "status": "granted"})
	}
	return map[string]any{"data": granted}, nil
}

// PageToken returns a Page token. In the sandbox, a token represents a user and one of their Pages. A Page token from a long-lived token
// does not expire; one from a short-lived token expires with it.
func (c *Call) PageToken(account state.Account) (string, *Error) {
	token, bearer, bad := c.token()
	if own := bearer.Account == account.Key; bad != nil || own && (bearer.ExpiresAt.IsZero() || account.Settings.TokenTTL > 0) {
		return token, bad
	}
	fresh := state.Tokens{Scopes: bearer.Scopes, ExpiresAt: bearer.ExpiresAt}
	if bearer.ExpiresAt.Sub(bearer.IssuedAt) > refreshAge {
		fresh.ExpiresAt = time.Time{}
	}
	tokens, err := c.api.Store.Grant(account.Key, fresh, false)
	if err != nil {
		return "", c.InternalError("keep a token", err)
	}
	return tokens.Access, nil
}

// Inspect handles GET /debug_token. It returns a token's details. The call's own token may be such a token or an app
// token: the app's ID and secret, separated by a bar.
func (a *API) Inspect(c *Call) (any, *Error) {
	own := c.givenToken()
	if id, secret, isApp := strings.Cut(own, "|"); !isApp || id == "" || secret == "" {
		if _, bad := c.Token(); bad != nil {
			return nil, bad
		}
	}
	asked := c.Params.Required("input_token")
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	bearer, known := a.Store.Bearer(asked)
	if !known || bearer.Account.Platform != a.Platform || a.Speaks != nil && !a.Speaks(bearer) {
		return map[string]any{"data": map[string]any{
			"is_valid": false, "scopes": []string{}, "error": map[string]any{"code": 190, "message": "Invalid OAuth access token."},
		}}, nil
	}
	out := map[string]any{
		"app_id": "1", "type": "PAGE", "application": "Herald sandbox", "is_valid": !bearer.Expired(a.Clock.Now()),
		"issued_at": bearer.IssuedAt.Unix(), "expires_at": 0, "data_access_expires_at": bearer.IssuedAt.Add(dataAccess).Unix(),
		"scopes": bearer.Scopes, "profile_id": bearer.Account.ID, "user_id": bearer.Account.ID,
	}
	if !bearer.ExpiresAt.IsZero() {
		out["type"], out["expires_at"] = "USER", bearer.ExpiresAt.Unix()
	}
	if bearer.Expired(a.Clock.Now()) {
		out["error"] = map[string]any{"code": 190, "subcode": 463, "message": "Error validating access token: Session has expired"}
	}
	return map[string]any{"data": out}, nil
}
