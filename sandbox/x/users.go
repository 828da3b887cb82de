// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"slices"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// authorized returns the account of the request's access token. If the token is missing, unknown, expired or lacks a
// scope, it responds with an error and returns false.
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

// usersMe handles GET /2/users/me.
func (p *Platform) usersMe(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callMe, scopeRead, scopeUsers)
	if !ok {
		return
	}
	query := newQuery(r.URL.Query())
	fields := query.list("user.fields", userFields)
	expansions := query.list("expansions", userExpansions)
	posted := append(query.list("tweet.fields", postFields), query.list("post.fields", postFields)...)
	query.rejectUnknown()
	if len(query.bad) > 0 {
		p.fail(w, callMe, invalid(query.bad...))
		return
	}
	p.succeed(w, callMe, http.StatusOK, p.meAnswer(r, account, fields, expansions, posted))
}

// meAnswer renders the token's own account, with its newest post if the expansions ask for it.
func (p *Platform) meAnswer(r *faults.Request, account state.Account, fields, expansions, posted []string) map[string]any {
	out := map[string]any{"data": p.userObject(r, account, append(fields, expansions...))}
	if expansions == nil {
		return out
	}
	included := includes{}
	newest, _, err := p.Store.Timeline(account.Key, state.Range{Limit: 1})
	for _, kind := range []string{"tweet", "post"} {
		if err == nil && len(newest) > 0 && slices.Contains(expansions, "most_recent_"+kind+"_id") {
			included.add(kind+"s", "id", p.tweetObject(newest[0], posted))
		}
	}
	out["includes"] = included
	return out
}

// userObject renders a user with the default and the requested fields.
func (p *Platform) userObject(r *faults.Request, account state.Account, fields []string) map[string]any {
	all := map[string]any{
		"created_at": account.CreatedAt.Format(timeForm), "profile_image_url": p.Avatar(r.Request, account),
		"protected": account.Settings.Private, "verified": false, "verified_type": "none", "subscription_type": "None",
		"id": account.ID, "name": account.DisplayName, "username": account.Username,
	}
	if newest, _, err := p.Store.Timeline(account.Key, state.Range{Limit: 1}); err == nil && len(newest) > 0 {
		all["most_recent_tweet_id"], all["most_recent_post_id"] = newest[0].ID, newest[0].ID
	}
	user := map[string]any{}
	for _, field := range append([]string{"id", "name", "username"}, fields...) {
		if value, found := all[field]; found {
			user[field] = value
		}
	}
	return user
}
