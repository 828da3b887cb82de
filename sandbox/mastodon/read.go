// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// visible returns the post in a request's path if the requester may see it. The token is optional for public posts.
func (p *Platform) visible(r *faults.Request) (state.Post, bool) {
	post, found := p.Store.Post(Name, r.PathValue("id"))
	reader, _, _ := p.Authorized(r, Name)
	return post, found && (post.AccountID == reader.ID || isPublic(post))
}

func isPublic(post state.Post) bool {
	return slices.Contains([]string{"public", "unlisted"}, detailOf(post).Visibility)
}

// readStatus handles GET /api/v1/statuses/:id.
func (p *Platform) readStatus(w http.ResponseWriter, r *faults.Request) {
	post, found := p.visible(r)
	if !found {
		p.fail(w, notFound())
		return
	}
	p.write(w, http.StatusOK, p.status(r.Request, p.author(post), post))
}

func (p *Platform) author(post state.Post) state.Account {
	author, _ := p.Store.Account(state.Key{Platform: Name, ID: post.AccountID})
	return author
}

// readSource handles GET /api/v1/statuses/:id/source.
func (p *Platform) readSource(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, "read", "read:statuses")
	if !ok {
		return
	}
	post, found := p.Store.Post(Name, r.PathValue("id"))
	if !found || post.AccountID != account.ID {
		p.fail(w, notFound())
		return
	}
	p.write(w, http.StatusOK, map[string]string{"id": post.ID, "text": post.Text, "spoiler_text": detailOf(post).Spoiler})
}

// readContext handles GET /api/v1/statuses/:id/context: the posts before and after one in its thread.
func (p *Platform) readContext(w http.ResponseWriter, r *faults.Request) {
	post, found := p.visible(r)
	if !found {
		p.fail(w, notFound())
		return
	}
	before, after := []any{}, []any{}
	for _, other := range p.Store.Chain(Name, post.Root) {
		switch order := other.Stamp.Compare(post.Stamp); {
		case order < 0:
			before = append(before, p.status(r.Request, p.author(other), other))
		case order > 0:
			after = append(after, p.status(r.Request, p.author(other), other))
		}
	}
	p.write(w, http.StatusOK, map[string]any{"ancestors": before, "descendants": after})
}

// deleteStatus handles DELETE /api/v1/statuses/:id, which returns the deleted post with its source.
func (p *Platform) deleteStatus(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, "write", "write:statuses")
	if !ok {
		return
	}
	post, found := p.Store.Post(Name, r.PathValue("id"))
	if !found || p.Store.Delete(account.Key, post.ID) != nil {
		p.fail(w, notFound())
		return
	}
	out := p.status(r.Request, account, post)
	out["text"] = post.Text
	p.write(w, http.StatusOK, out)
}

const (
	defaultPage = 20
	longestPage = 40
)

// listStatuses handles GET /api/v1/accounts/:id/statuses. A limit beyond the maximum counts as the maximum
// (app/controllers/api/base_controller.rb). Boosts are not simulated.
func (p *Platform) listStatuses(w http.ResponseWriter, r *faults.Request) {
	account, found := p.Store.Account(state.Key{Platform: Name, ID: r.PathValue("id")})
	reader, bearer, ok := p.Authorized(r, Name)
	switch {
	case r.Header.Get("Authorization") != "" && !ok:
		p.fail(w, problemFor(http.StatusUnauthorized))
		return
	case !found:
		p.fail(w, notFound())
		return
	}
	own := reader.Key == account.Key && (bearer.Allows("read") || bearer.Allows("read:statuses"))
	part, with := p.readRange(r, own)
	if with != nil {
		p.fail(w, with)
		return
	}
	posts, more, err := p.Store.Timeline(account.Key, part)
	if with := p.broken("posts could not be listed", account.ID, err); with != nil {
		p.fail(w, with)
		return
	}
	out := []any{}
	for _, post := range posts {
		out = append(out, p.status(r.Request, account, post))
	}
	p.link(w, r, posts, more)
	p.write(w, http.StatusOK, out)
}

// readRange reads the parameters of a listing. Only the account itself sees posts that are not public.
func (p *Platform) readRange(r *faults.Request, own bool) (state.Range, *problem) {
	q, _ := readParams(r)
	part := state.Range{Limit: defaultPage, Lag: r.ListLag}
	for name, bound := range map[string]*state.Stamp{"max_id": &part.Before, "since_id": &part.After} {
		if id := q.text(name); id != "" {
			stamp, ok := stampOf(id)
			if !ok {
				return part, &problem{http.StatusBadRequest, name + " is not an id"}
			}
			*bound = stamp
		}
	}
	if limit := q.text("limit"); limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > longestPage && !p.Lenient {
			return part, &problem{http.StatusBadRequest, fmt.Sprintf("limit is not between 1 and %d", longestPage)}
		}
		part.Limit = min(n, longestPage)
	}
	q.flag("exclude_reblogs")
	q.flag("exclude_replies") // replies to oneself stay
	media, pinned := q.flag("only_media"), q.flag("pinned")
	part.Keep = func(post *state.Post) bool {
		return (own || isPublic(*post)) && (!media || len(post.Media) > 0) && !pinned
	}
	return part, p.checked(q)
}

// link sets the header with the addresses of the next page and of the newer posts (api/guidelines, "Pagination").
func (p *Platform) link(w http.ResponseWriter, r *faults.Request, posts []state.Post, more bool) {
	if len(posts) == 0 {
		return
	}
	page := func(name, id, rel string) string {
		query := url.Values{name: {id}}
		if limit := r.URL.Query().Get("limit"); limit != "" {
			query.Set("limit", limit)
		}
		return "<" + p.APIURL(r.Request) + r.URL.Path + "?" + query.Encode() + `>; rel="` + rel + `"`
	}
	link := page("min_id", posts[0].ID, "prev")
	if more {
		link = page("max_id", posts[len(posts)-1].ID, "next") + ", " + link
	}
	w.Header().Set("Link", link)
}
