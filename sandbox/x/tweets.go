// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"errors"
	"net/http"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// readTweetByID handles GET /2/tweets/{id}. X reports a missing or hidden post with status 200.
func (p *Platform) readTweetByID(w http.ResponseWriter, r *faults.Request) {
	reader, ok := p.authorized(w, r, callRead, scopeRead, scopeUsers)
	if !ok {
		return
	}
	id := r.PathValue("id")
	query := newQuery(r.URL.Query())
	shape := query.shape()
	query.rejectUnknown()
	if !idPattern.MatchString(id) {
		query.reject("id", id, "is not a valid post id")
	}
	if len(query.bad) > 0 {
		p.fail(w, callRead, invalid(query.bad...))
		return
	}
	post, found := p.Store.Post(Name, id)
	author, _ := p.Store.Account(state.Key{Platform: Name, ID: post.AccountID})
	if missing := unseen("tweet", id, found, author, reader); missing != nil {
		p.succeed(w, callRead, http.StatusOK, map[string]any{"errors": []resourceError{*missing}})
		return
	}
	out := map[string]any{"data": p.tweetObject(post, shape.fields)}
	if includes := p.includes(r, []state.Post{post}, shape); includes != nil {
		out["includes"] = includes
	}
	p.succeed(w, callRead, http.StatusOK, out)
}

// deleteTweet handles DELETE /2/tweets/{id}.
func (p *Platform) deleteTweet(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callDelete, scopeRead, scopeWrite, scopeUsers)
	if !ok {
		return
	}
	id := r.PathValue("id")
	post, found := p.Store.Post(Name, id)
	switch {
	case !found:
		with := problemFor(http.StatusNotFound)
		with.Detail = "Could not find tweet with id: [" + id + "]."
		p.fail(w, callDelete, with)
		return
	case post.AccountID != account.ID:
		p.fail(w, callDelete, forbidden(notPermitted, typeBlank))
		return
	}
	err := p.Store.Delete(account.Key, id)
	if errors.Is(err, state.ErrNoPost) {
		err = nil // a concurrent call deleted it
	}
	p.answer(w, callDelete, p.broken("a post could not be deleted", id, err), map[string]bool{"deleted": true})
}
