// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// LongLife is the long-lived token lifetime: 60 days.
	LongLife = 60 * 24 * time.Hour
	// refreshAge is a long-lived token's minimum age for a refresh.
	refreshAge = 24 * time.Hour
)

// bearerToken returns the Authorization header's token, or "". Meta's upload hosts call the scheme OAuth, and the other hosts accept that
// too.
func bearerToken(r *http.Request) string { return simulator.BearerToken(r, "OAuth") }

// account returns the account of a request's access token, even an expired one.
func (a *API) account(r *faults.Request) string {
	token := bearerToken(r.Request)
	if token == "" {
		if params, bad := a.readParams(r); bad == nil {
			token = params.values[tokenParam]
		}
	}
	bearer, ok := a.Store.Bearer(token)
	if !ok || bearer.Account.Platform != a.Platform {
		return ""
	}
	return bearer.Account.ID
}

// token returns the call's access token and its bearer.
func (c *Call) token() (string, state.Bearer, *Error) {
	token := c.givenToken()
	if token == "" {
		return "", state.Bearer{}, noToken()
	}
	bearer, ok := c.api.Store.Bearer(token)
	now := c.api.Clock.Now()
	switch {
	case !ok || bearer.Account.Platform != c.api.Platform, c.api.Speaks != nil && !c.api.Speaks(bearer):
		return "", state.Bearer{}, unknownToken()
	case bearer.Expired(now):
		return "", state.Bearer{}, expiredToken(bearer.ExpiresAt, now)
	}
	return token, bearer, nil
}

// givenToken returns the call's token from the header or, without one, from the parameters.
func (c *Call) givenToken() string {
	if token := bearerToken(c.Request.Request); token != "" {
		return token
	}
	return c.Params.values[tokenParam]
}

// Token returns the call's access token.
func (c *Call) Token() (string, *Error) {
	token, _, bad := c.token()
	return token, bad
}

// Account returns the account of the call's access token, which must have all the scopes.
func (c *Call) Account(scopes ...string) (state.Account, *Error) {
	_, bearer, bad := c.token()
	if bad != nil {
		return state.Account{}, bad
	}
	for _, scope := range scopes {
		if !bearer.Allows(scope) {
			return state.Account{}, c.api.missingScope(scope)
		}
	}
	account, ok := c.api.Store.Account(bearer.Account)
	if !ok {
		return state.Account{}, unknownToken()
	}
	return account, nil
}

// Owner is like Account, for a path that starts with the account's own ID or with me.
func (c *Call) Owner(scopes ...string) (state.Account, *Error) {
	account, bad := c.Account(scopes...)
	if bad != nil {
		return state.Account{}, bad
	}
	if id := c.PathValue("id"); !slices.Contains([]string{account.ID, "me", ""}, id) {
		return state.Account{}, NoObject(strings.ToLower(c.Method), id)
	}
	return account, nil
}

// Refresh returns the handler of GET /refresh_access_token. A day-old long-lived token gets a new one; there are no
// refresh tokens. If the control API sets another lifetime, the minimum age shrinks in proportion.
func (a *API) Refresh(grantType, scope string) Handler {
	return func(c *Call) (any, *Error) {
		account, bad := c.Account(scope)
		if bad != nil {
			return nil, bad
		}
		c.Params.Required("grant_type")
		c.Params.OneOf("grant_type", grantType)
		if bad := c.Params.Validate(); bad != nil {
			return nil, bad
		}
		_, bearer, bad := c.token()
		if bad != nil {
			return nil, bad
		}
		age := refreshAge
		if ttl := account.Settings.TokenTTL; ttl > 0 {
			age = ttl / (LongLife / refreshAge)
		}
		if a.Clock.Now().Before(bearer.IssuedAt.Add(age)) {
			return nil, BadParam("This access token is too new to be refreshed: it must be at least %s old.", age)
		}
		return c.renew(a.Terms)
	}
}
