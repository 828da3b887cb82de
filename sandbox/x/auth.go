// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"strings"

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

// authorized returns the account of the request's access token. When the token is missing, unknown, expired or lacks a
// scope, or the account has used up what it may ask of the endpoint, it answers so and returns false.
func (p *Platform) authorized(
	w http.ResponseWriter, r *faults.Request, of endpoint, scopes ...string,
) (state.Account, bool) {
	bearer, ok := p.Store.Bearer(bearerToken(r.Request))
	if !ok || bearer.Account.Platform != Name || !p.Clock.Now().Before(bearer.ExpiresAt) {
		p.fail(w, of, unauthorized())
		return state.Account{}, false
	}
	for _, scope := range scopes {
		if !bearer.Allows(scope) {
			with := forbidden("The access token lacks the scope " + scope + ".")
			with.Type = problemURL + "not-authorized-for-resource"
			p.fail(w, of, with)
			return state.Account{}, false
		}
	}
	account, ok := p.Store.Account(bearer.Account)
	if !ok {
		p.fail(w, of, unauthorized())
		return account, false
	}
	return account, p.admit(w, of, account)
}
