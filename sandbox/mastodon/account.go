// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"net/http"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// verifyCredentials handles GET /api/v1/accounts/verify_credentials.
func (p *Platform) verifyCredentials(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, "read", "read:accounts", "profile")
	if !ok {
		return
	}
	out := p.account(r.Request, account)
	out["source"] = map[string]any{"privacy": "public", "sensitive": false, "language": nil, "note": "", "fields": []any{}, "follow_requests_count": 0}
	out["role"] = map[string]any{"id": "-99", "name": "", "permissions": "65536", "color": "", "highlighted": false}
	p.write(w, http.StatusOK, out)
}

// lookupAccount handles GET /api/v1/accounts/lookup, which is public.
func (p *Platform) lookupAccount(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.Store.AccountNamed(Name, r.URL.Query().Get("acct"))
	if !ok {
		p.fail(w, notFound())
		return
	}
	p.write(w, http.StatusOK, p.account(r.Request, account))
}

// readAccount handles GET /api/v1/accounts/:id, which is public.
func (p *Platform) readAccount(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.Store.Account(state.Key{Platform: Name, ID: r.PathValue("id")})
	if !ok {
		p.fail(w, notFound())
		return
	}
	p.write(w, http.StatusOK, p.account(r.Request, account))
}

// account renders an account (entities/Account).
func (p *Platform) account(r *http.Request, a state.Account) map[string]any {
	avatar := p.Avatar(r, a)
	return map[string]any{
		"id": a.ID, "username": a.Username, "acct": a.Username, "display_name": a.DisplayName, "locked": false, "bot": false,
		"group": false, "discoverable": true, "indexable": false, "created_at": a.CreatedAt.UTC().Format("2006-01-02T00:00:00.000Z"), "note": "",
		"url": p.SiteURL(r) + "/mastodon/@" + a.Username, "uri": p.SiteURL(r) + "/mastodon/users/" + a.Username,
		"avatar": avatar, "avatar_static": avatar, "header": avatar, "header_static": avatar,
		"followers_count": 0, "following_count": 0, "statuses_count": p.Store.PostCount(a.Key), "last_status_at": nil,
		"hide_collections": false, "noindex": false, "emojis": []any{}, "roles": []any{}, "fields": []any{},
	}
}
