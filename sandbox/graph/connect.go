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

// OpExchange is the exchange of a code or token, and looking into one, which faults cannot name, only match with `*`.
const OpExchange faults.Operation = "exchange"

const (
	// codeLife is that of codes. Meta does not document it; its pages speak of an hour.
	codeLife = time.Hour
	// shortLife is that of the tokens that codes give: Threads and Instagram document an hour, Facebook one to two.
	shortLife = time.Hour
	// dataAccess is how long a token reaches the data of its person: 90 days.
	dataAccess = 90 * 24 * time.Hour
)

// NewDialog makes the page on which a person lets a client into an account, among those that it offers; nil means all.
func (a *API) NewDialog(offers func(state.Account) bool) *oauth.Dialog {
	return oauth.NewDialog(&oauth.Dialog{
		Options: a.Options, Profile: a.Profile, ClientParam: "client_id", CodeLife: codeLife, Fragment: "_", Offers: offers,
	})
}

// ExchangeCode is POST /oauth/access_token as Threads and Instagram have it, on hosts whose errors have a shape of their
// own. Any client is known here, and any secret is right. answer adds what the platform tells beside the token.
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
		// The fragment that the address of the person ended in is no part of the code.
		granted, ok := dialog.Redeem(strings.TrimSuffix(code, "#_"), client, redirect)
		if !ok {
			return nil, flat("Matching code was not found or was already used")
		}
		tokens, err := dialog.Tokens(granted, shortLife, false)
		if err != nil {
			return nil, c.Broken("keep a token", err)
		}
		body := answer(granted)
		body["access_token"] = tokens.Access
		return body, nil
	}
}

// flat is an error as the hosts word it that exchange codes: {"error_type", "code", "error_message"} (the pages "Get Access
// Tokens" of Threads and "Business Login for Instagram").
func flat(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: typeOAuth, Code: http.StatusBadRequest, Message: message, flat: true}
}

// Lengthen is GET /access_token: it gives a long-lived token for a short-lived one.
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

// renew gives another token for the call's own.
func (c *Call) renew(terms func(state.Account) state.Terms) (any, *Error) {
	token, _, bad := c.token()
	if bad != nil {
		return nil, bad
	}
	fresh, ok, err := c.api.Store.Renew(token, terms)
	switch {
	case err != nil:
		return nil, c.Broken("renew a token", err)
	case !ok:
		return nil, unknownToken()
	}
	return tokenAnswer(c.api, fresh), nil
}

// tokenAnswer tells a token. One that does not end says nothing of its end.
func tokenAnswer(a *API, t state.Tokens) map[string]any {
	out := map[string]any{"access_token": t.Access, "token_type": "bearer"}
	if !t.ExpiresAt.IsZero() {
		out["expires_in"] = a.Seconds(t.ExpiresAt)
	}
	return out
}

// RegisterFacebookLogin adds what Facebook Login has below a base path, for api.Handle: the dialog, the exchange of codes
// and tokens, and the inspection of tokens (Meta's pages "Manually Build a Login Flow", "Long-Lived Access Tokens" and
// "Debug Token"). The dialog is on a host of its own, whose paths are others.
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

// facebookToken is GET or POST /oauth/access_token of Facebook Login.
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
			return nil, c.Broken("keep a token", err)
		}
		return tokenAnswer(a, tokens), nil
	}
}

// permissions is GET /me/permissions: what a person granted. What they declined is not known here.
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

// PageToken returns a token for a Page that the call's token leads to. One token stands for the person and for one of their
// Pages here. What a long-lived one leads to does not end, and what a short-lived one leads to ends with it.
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
		return "", c.Broken("keep a token", err)
	}
	return tokens.Access, nil
}

// Inspect is GET /debug_token: what a token stands for. The call's own token may be one, or an app's: its id and its
// secret with a bar between them.
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
