// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	defaultVideos = 10
	maxVideos     = 20
)

// listFields are a post's fields in the list.
var listFields = []string{"id", "create_time", "title", "video_description", "share_url", "cover_image_url"}

// list handles POST /v2/video/list/: the public posts of an account, newest first.
func (p *Platform) list(w http.ResponseWriter, r *faults.Request) {
	account, _, ok := p.authorized(w, r, scopeList)
	if !ok {
		return
	}
	body := struct {
		MaxCount int   `json:"max_count"`
		Cursor   int64 `json:"cursor"`
	}{MaxCount: defaultVideos}
	bad := p.readJSON(r, &body, "fields")
	fields, unknown := readFields(r)
	if bad == nil {
		bad = unknown
	}
	if bad == nil && (body.MaxCount < 1 || body.MaxCount > maxVideos) {
		bad = invalid("max_count must be from 1 to %d.", maxVideos)
	}
	if bad != nil {
		p.answer(w, nil, bad)
		return
	}
	now := p.Clock.Now()
	within := state.Range{Lag: r.ListLag, Limit: body.MaxCount, Keep: func(post *state.Post) bool {
		return p.public(account, post) && !now.Before(listedAt(account, *post))
	}}
	if body.Cursor > 0 {
		within.To = time.UnixMilli(body.Cursor)
	}
	posts, more, err := p.Store.Timeline(account.Key, within)
	if err != nil {
		p.answer(w, nil, p.broken("list posts", err))
		return
	}
	videos := []map[string]any{}
	cursor := body.Cursor
	for _, post := range posts {
		videos = append(videos, p.listed(r.Request, account, post, fields))
		cursor = post.CreatedAt().UnixMilli()
	}
	p.succeed(w, map[string]any{"videos": videos, "cursor": cursor, "has_more": more})
}

// readFields reads the requested fields of posts.
func readFields(r *faults.Request) ([]string, *refusal) {
	fields := strings.Split(r.URL.Query().Get("fields"), ",")
	for _, field := range fields {
		if !slices.Contains(listFields, field) {
			return nil, invalid("Fields is required, and of these: %s.", strings.Join(listFields, ","))
		}
	}
	return fields, nil
}

// query handles POST /v2/video/query/ ("Query Videos"): the public posts among the given ids. TikTok has no API for
// deleting a post.
func (p *Platform) query(w http.ResponseWriter, r *faults.Request) {
	account, _, ok := p.authorized(w, r, scopeList)
	if !ok {
		return
	}
	var body struct {
		Filters struct {
			IDs []string `json:"video_ids"`
		} `json:"filters"`
	}
	bad := p.readJSON(r, &body, "fields")
	fields, unknown := readFields(r)
	if bad == nil {
		bad = unknown
	}
	if n := len(body.Filters.IDs); bad == nil && (n < 1 || n > maxVideos) {
		bad = invalid("filters.video_ids must have 1 to %d ids.", maxVideos)
	}
	if bad != nil {
		p.answer(w, nil, bad)
		return
	}
	videos := []map[string]any{}
	for _, id := range body.Filters.IDs {
		post, found := p.Store.Post(Name, id)
		if found && post.AccountID == account.ID && p.public(account, &post) && !p.Clock.Now().Before(listedAt(account, post)) {
			videos = append(videos, p.listed(r.Request, account, post, fields))
		}
	}
	p.succeed(w, map[string]any{"videos": videos})
}

// maxListed is the maximum length of text in the list ("Video Object": "Max length: 150"). TikTok does not document the
// unit; it is UTF-16 here, as elsewhere on TikTok.
const maxListed = 150

// cut shortens text for the list without splitting a character.
func cut(text string) string {
	units := 0
	for i, r := range text {
		if units += utf16.RuneLen(r); units > maxListed {
			return text[:i]
		}
	}
	return text
}

// listed renders the given fields of a post.
func (p *Platform) listed(r *http.Request, account state.Account, post state.Post, fields []string) map[string]any {
	title := post.Title
	if detailOf(post).MediaType == video {
		title = post.Text
	}
	cover := ""
	if len(post.Media) > 0 && strings.HasPrefix(post.Media[0].MIMEType, "image/") {
		cover = p.File(r, post.Media[0])
	}
	out := map[string]any{}
	for name, value := range map[string]any{
		"id": post.ID, "create_time": post.CreatedAt().Unix(), "title": cut(title), "video_description": cut(post.Text),
		"share_url": p.SiteURL(r) + p.PostPath(account.Username, post.ID), "cover_image_url": cover,
	} {
		if slices.Contains(fields, name) {
			out[name] = value
		}
	}
	return out
}
