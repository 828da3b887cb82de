// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// userFields are the fields of a user that may be asked for.
var userFields = []string{
	"affiliation", "confirmed_email", "connection_status", "created_at", "description", "entities", "id", "is_identity_verified",
	"location", "most_recent_post_id", "most_recent_tweet_id", "name", "parody", "pinned_tweet_id", "profile_banner_url",
	"profile_image_url", "protected", "public_metrics", "receives_your_dm", "subscription", "subscription_type", "url",
	"username", "verified", "verified_followers_count", "verified_type", "withheld",
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
	user := map[string]any{"id": account.ID, "name": account.DisplayName, "username": account.Username}
	for _, field := range fields {
		if value := p.userField(field, account, r); value != nil {
			user[field] = value
		}
	}
	p.succeed(w, callMe, http.StatusOK, map[string]any{"data": user})
}

// userField returns nil for a field that the account does not have.
func (p *Platform) userField(field string, account state.Account, r *faults.Request) any {
	switch field {
	case "created_at":
		return account.CreatedAt.Format("2006-01-02T15:04:05.000Z")
	case "most_recent_post_id", "most_recent_tweet_id":
		// It lags as listings do: both come from the same index.
		if newest, _, err := p.Store.Timeline(account.Key, state.Range{Limit: 1}); err == nil && len(newest) == 1 {
			return newest[0].ID
		}
	case "profile_image_url":
		return p.SiteURL(r.Request) + "/_assets/avatar/" + Name + "/" + account.ID + "_normal.svg"
	case "protected":
		return account.Settings.Private
	case "subscription_type":
		return "None"
	case "verified":
		return false
	case "verified_type":
		return "none"
	}
	return nil
}
