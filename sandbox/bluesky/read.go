// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// describeServer implements com.atproto.server.describeServer.
func (p *Platform) describeServer(w http.ResponseWriter, r *faults.Request) {
	p.write(w, http.StatusOK, map[string]any{
		"did": "did:web:" + url.PathEscape(r.Host), "availableUserDomains": []string{".test"}, "inviteCodeRequired": true,
		"links": map[string]any{}, "contact": map[string]any{},
	})
}

// resolveHandle implements com.atproto.identity.resolveHandle, which is public.
func (p *Platform) resolveHandle(w http.ResponseWriter, r *faults.Request) {
	query, with := p.params(r, "handle")
	account, found := p.Store.AccountNamed(Name, strings.ToLower(query.Get("handle")))
	if with == nil && !found {
		with = named("HandleNotFound", "Unable to resolve handle")
	}
	if with != nil {
		p.fail(w, with)
		return
	}
	p.write(w, http.StatusOK, map[string]string{"did": account.ID})
}

// getRecord implements com.atproto.repo.getRecord, which is public. An account has one record besides its posts: its
// profile.
func (p *Platform) getRecord(w http.ResponseWriter, r *faults.Request) {
	query, with := p.params(r, "repo", "collection", "rkey", "cid")
	if with != nil {
		p.fail(w, with)
		return
	}
	account, found := p.account(query.Get("repo"))
	if !found {
		p.fail(w, invalid("Could not locate record"))
		return
	}
	key := query.Get("rkey")
	address := "at://" + account.ID + "/" + query.Get("collection") + "/" + key
	out := map[string]any{"uri": address}
	post, exists := p.postAt(address)
	switch {
	case exists:
		kept := detailOf(post)
		out["cid"], out["value"] = kept.CID, kept.Record
	case query.Get("collection") == profiles && key == "self":
		out["cid"], out["value"] = recordCID([]byte(account.DisplayName)), map[string]string{"$type": profiles, "displayName": account.DisplayName}
	}
	if wanted := query.Get("cid"); out["cid"] == nil || wanted != "" && wanted != out["cid"] {
		p.fail(w, named("RecordNotFound", "Could not locate record: "+address))
		return
	}
	p.write(w, http.StatusOK, out)
}

const (
	defaultPage = 50
	longestPage = 100
)

// listRecords implements com.atproto.repo.listRecords, which is public. Records are in descending order of their keys.
func (p *Platform) listRecords(w http.ResponseWriter, r *faults.Request) {
	query, with := p.params(r, "repo", "collection", "limit", "cursor", "reverse")
	if with != nil {
		p.fail(w, with)
		return
	}
	account, found := p.account(query.Get("repo"))
	limit, err := strconv.Atoi(query.Get("limit"))
	if !query.Has("limit") {
		limit, err = defaultPage, nil
	}
	switch {
	case !found:
		with = invalid("Could not find repo: " + query.Get("repo"))
	case query.Get("collection") != posts:
		with = invalid("the collection " + query.Get("collection") + " is not simulated")
	case err != nil || limit < 1 || limit > longestPage:
		with = invalid("limit must be between 1 and 100")
	}
	if with != nil {
		p.fail(w, with)
		return
	}
	page := p.listed(r, account, query)
	out := map[string]any{}
	if len(page) > limit {
		page = page[:limit]
	}
	if len(page) > 0 {
		out["cursor"] = page[len(page)-1].ID
	}
	records := []any{}
	for _, post := range page {
		kept := detailOf(post)
		records = append(records, map[string]any{"uri": uri(account.ID, post.ID), "cid": kept.CID, "value": kept.Record})
	}
	out["records"] = records
	p.write(w, http.StatusOK, out)
}

// listed returns an account's posts from the cursor on, in the order of the request.
func (p *Platform) listed(r *faults.Request, account state.Account, query url.Values) []state.Post {
	cursor, reverse := query.Get("cursor"), query.Get("reverse") == "true"
	visible := p.Clock.Now().Add(-max(r.ListLag, account.Settings.Lag(0)))
	all := slices.DeleteFunc(p.Store.Posts(Name, account.ID), func(post state.Post) bool {
		before := cursor != "" && (reverse && post.ID <= cursor || !reverse && post.ID >= cursor)
		return before || post.CreatedAt().After(visible)
	})
	slices.SortFunc(all, func(a, b state.Post) int {
		if reverse {
			a, b = b, a
		}
		return strings.Compare(b.ID, a.ID)
	})
	return all
}
