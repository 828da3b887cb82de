// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// userFields are the fields of a user that may be asked for, as far as they are simulated.
var userFields = []string{"created_at", "id", "name", "profile_image_url", "protected", "username", "verified", "verified_type"}

// authorized returns the account of the request's access token. When the token is missing, unknown, expired or lacks a
// scope, it answers so and returns false.
func (p *Platform) authorized(w http.ResponseWriter, r *faults.Request, of endpoint, scopes ...string) (state.Account, bool) {
	account, bearer, ok := p.Authorized(r, Name)
	if !ok {
		p.fail(w, of, unauthorized())
		return state.Account{}, false
	}
	for _, scope := range scopes {
		if !bearer.Allows(scope) {
			p.fail(w, of, forbidden("The access token lacks the scope "+scope+".", notAuthorized))
			return state.Account{}, false
		}
	}
	return account, true
}

// usersMe is GET /2/users/me.
func (p *Platform) usersMe(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callMe, scopeRead, scopeUsers)
	if !ok {
		return
	}
	query := newQuery(r.URL.Query())
	fields := query.list("user.fields", userFields)
	query.end()
	if len(query.bad) > 0 {
		p.fail(w, callMe, invalid(query.bad...))
		return
	}
	all := map[string]any{
		"created_at": account.CreatedAt.Format(timeForm), "profile_image_url": p.Avatar(r.Request, account),
		"protected": account.Settings.Private, "verified": false, "verified_type": "none",
		"id": account.ID, "name": account.DisplayName, "username": account.Username,
	}
	user := map[string]any{}
	for _, field := range append([]string{"id", "name", "username"}, fields...) {
		user[field] = all[field]
	}
	p.answer(w, callMe, nil, user)
}
