// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"net/http"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// The fields that may be asked for. Those that have nothing to say here are left out of the answer.
var (
	pageFields = []string{
		"id", "name", "username", "picture", "link", "about", "bio", "category", "category_list", "cover", "description",
		"emails", "fan_count", "followers_count", "has_transitioned_to_new_page_experience", "instagram_business_account",
		"is_published", "location", "phone", "tasks", "verification_status", "website",
	}
	postFields = []string{
		"id", "message", "created_time", "updated_time", "permalink_url", "is_published", "is_hidden", "is_expired",
		"is_eligible_for_promotion", "is_spherical", "from", "attachments", "actions", "backdated_time", "child_attachments",
		"full_picture", "icon", "message_tags", "parent_id", "picture", "place", "privacy", "promotable_id", "properties",
		"scheduled_publish_time", "shares", "status_type", "story", "story_tags", "subscribed", "to", "video_buying_eligibility",
	}
)

// result is what a handler returns of a selected node.
func result(body map[string]any, bad *graph.Error) (any, *graph.Error) {
	if bad != nil {
		return nil, bad
	}
	return body, nil
}

// page is GET /me, and GET /{id} for the Page itself.
func (p *Platform) page(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner()
	if bad != nil {
		return nil, bad
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	site := p.SiteURL(c.Request.Request)
	picture := graph.Node{
		Type: "ProfilePictureSource",
		Values: map[string]any{
			"url": site + "/_assets/avatar/" + Name + "/" + account.ID + ".svg", "width": 96, "height": 96, "is_silhouette": false,
		},
		Known:   []string{"cache_key", "height", "is_silhouette", "url", "width"},
		Default: []string{"height", "is_silhouette", "url", "width"},
	}
	return result(graph.Node{
		Type: "Page",
		Values: map[string]any{
			"id": account.ID, "name": account.DisplayName, "username": account.Username, "picture": graph.Wrapped(picture),
			"link": site + "/facebook/" + account.Username, "category": "Software", "is_published": true,
			"tasks": []string{"ADVERTISE", "ANALYZE", "CREATE_CONTENT", "MESSAGING", "MODERATE", "MANAGE"},
		},
		Known: pageFields, Default: []string{"name", "id"},
	}.Select(fields))
}

// read is GET /{id} for a post or photo.
func (p *Platform) read(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopeRead)
	if bad != nil {
		return nil, bad
	}
	node, ok := p.find(c.Request.Request, account, c.PathValue("id"))
	if !ok {
		return nil, graph.NoObject("get", c.PathValue("id"))
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	return result(node.Select(fields))
}

// find returns a post or photo of page.
func (p *Platform) find(r *http.Request, page state.Account, id string) (graph.Node, bool) {
	if post, ok := p.Store.Post(Name, id); ok && post.AccountID == page.ID {
		return p.post(r, page, post), true
	}
	if photo, ok := p.photoOf(page, id); ok {
		return p.photoNode(r, page, photo), true
	}
	return graph.Node{}, false
}

// published is GET /{id}/published_posts and GET /{id}/feed.
func (p *Platform) published(c *graph.Call) (any, *graph.Error) {
	page, bad := c.Owner(scopeRead)
	if bad != nil {
		return nil, bad
	}
	keep := func(post *state.Post) bool { return !post.Draft }
	return c.List(page, keep, func(post state.Post) graph.Node { return p.post(c.Request.Request, page, post) })
}

// post shows a post of page.
func (p *Platform) post(r *http.Request, page state.Account, post state.Post) graph.Node {
	at := post.CreatedAt().Format(graph.TimeForm)
	values := map[string]any{
		"id": post.ID, "created_time": at, "updated_time": at, "permalink_url": p.SiteURL(r) + p.PostPath(page.Username, post.ID),
		"is_published": !post.Draft, "is_hidden": false, "is_expired": false, "is_spherical": false,
		"from":        pageReference(page),
		"privacy":     map[string]string{"allow": "", "deny": "", "description": "Public", "friends": "", "value": "EVERYONE"},
		"status_type": "mobile_status_update",
	}
	if post.Text != "" {
		values["message"] = post.Text
	}
	switch {
	case len(post.Media) > 0:
		values["status_type"] = "added_photos"
		values["attachments"] = graph.Edge{p.photoAttachment(r, page, post)}
		values["full_picture"], values["picture"] = p.fileURL(r, post.Media[0]), p.fileURL(r, post.Media[0])
	case post.Link != "":
		values["status_type"] = "shared_story"
		values["attachments"] = graph.Edge{linkAttachment(post.Link)}
	}
	return graph.Node{Type: "Post", Values: values, Known: postFields, Default: []string{"created_time", "message", "id"}}
}

// pageReference is a Page as what it published names it.
func pageReference(page state.Account) graph.Node {
	return graph.Node{
		Type: "Page", Values: map[string]any{"id": page.ID, "name": page.DisplayName},
		Known: []string{"id", "name", "username"}, Default: []string{"name", "id"},
	}
}
