// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"cmp"
	"hash/fnv"
	"net/http"
	"slices"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// postFields are the simulated post fields. The response omits fields without a value.
var postFields = []string{"id", "message", "created_time", "updated_time", "permalink_url", "is_published", "from", "attachments", "status_type"}

// page handles GET /me, and GET /{id} for the Page itself.
func (p *Platform) page(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner()
	if bad != nil {
		return nil, bad
	}
	return c.Show(p.pageNode(c, account))
}

// pages handles GET /me/accounts: the Pages that the token's owner may use, with their tokens. In the sandbox these are
// the token's own Page and the Pages in its settings.
func (p *Platform) pages(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopeList)
	if bad != nil {
		return nil, bad
	}
	c.Params.Integer("limit", 1, 1, 100)
	managed := []state.Account{account}
	for _, id := range account.Settings.Pages {
		if other, ok := p.Store.Account(state.Key{Platform: Name, ID: id}); ok {
			managed = append(managed, other)
		}
	}
	nodes := make([]graph.Node, len(managed))
	for i, of := range managed {
		nodes[i] = p.pageNode(c, of)
		if nodes[i].Values["access_token"], bad = c.PageToken(of); bad != nil {
			return nil, bad
		}
		nodes[i].Default = []string{"access_token", "category", "name", "id", "tasks"}
	}
	return c.ShowListed(nodes...)
}

func (p *Platform) pageNode(c *graph.Call, account state.Account) graph.Node {
	picture := graph.Node{
		Type: "ProfilePictureSource", Values: map[string]any{"url": p.Avatar(c.Request.Request, account)},
		Known: []string{"url"}, Default: []string{"url"},
	}
	return graph.Node{
		Type: "Page",
		Values: map[string]any{
			"id": account.ID, "name": account.DisplayName, "username": account.Username, "picture": graph.Wrapped(picture),
			"link":     p.SiteURL(c.Request.Request) + "/facebook/" + account.Username,
			"tasks":    []string{"ADVERTISE", "ANALYZE", "CREATE_CONTENT", "MESSAGING", "MODERATE", "MANAGE"},
			"category": "Software",
		},
		Known: []string{
			"id", "name", "username", "picture", "link", "tasks", "access_token", "category", "category_list", "instagram_business_account",
		},
		Default: []string{"name", "id"},
	}
}

// read handles GET /{id} for a post or photo.
func (p *Platform) read(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopeRead)
	if bad != nil {
		return nil, bad
	}
	node, ok := p.find(c.Request.Request, account, c.PathValue("id"))
	if !ok {
		return nil, graph.NoObject("get", c.PathValue("id"))
	}
	return c.Show(node)
}

// remove handles DELETE /{id} for a post (Graph's Page Post reference, "Deleting").
func (p *Platform) remove(c *graph.Call) (any, *graph.Error) {
	page, bad := c.Account(scopePost)
	if bad != nil {
		return nil, bad
	}
	if bad := c.DeletePost(page); bad != nil {
		return nil, bad
	}
	return map[string]bool{"success": true}, nil
}

// find returns one of page's posts or photos.
func (p *Platform) find(r *http.Request, page state.Account, id string) (graph.Node, bool) {
	if post, ok := p.Store.Post(Name, id); ok && post.AccountID == page.ID {
		return p.post(r, page, post), true
	}
	if draft, ok := p.draftOf(page, id); ok {
		return p.draftNode(r, page, draft), true
	}
	if photo, ok := p.photoOf(page, id); ok {
		return p.photoNode(r, page, photo), true
	}
	return graph.Node{}, false
}

// maxRanked is the number of posts per year that a Page lists ("The API will return approximately 600 ranked, published posts per year":
// limitations of /{page}/published_posts and /{page}/feed).
const maxRanked = 600

// ranked returns the filter for a Page's listed posts. In a year with more posts, some are missing, possibly even the newest: Facebook does
// not document its ranking. The sandbox ranks by a hash of the ID, which treats all posts equally.
func (p *Platform) ranked(page state.Account) func(*state.Post) bool {
	if p.Store.PostCount(page.Key) <= maxRanked {
		return nil
	}
	byYear := map[int][]string{}
	for _, post := range p.Store.Posts(Name, page.ID) {
		year := post.CreatedAt().Year()
		byYear[year] = append(byYear[year], post.ID)
	}
	listed := map[string]bool{}
	for _, ids := range byYear {
		slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
		for _, id := range ids[:min(len(ids), maxRanked)] {
			listed[id] = true
		}
	}
	return func(post *state.Post) bool { return listed[post.ID] }
}

// rank returns a post's position in the ranking.
func rank(id string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(id)) // a hash never fails
	return sum.Sum64()
}

// published handles GET /{id}/published_posts and GET /{id}/feed.
func (p *Platform) published(c *graph.Call) (any, *graph.Error) {
	page, bad := c.Owner(scopeRead)
	if bad != nil {
		return nil, bad
	}
	return c.List(page, p.ranked(page), func(post state.Post) graph.Node { return p.post(c.Request.Request, page, post) })
}

// post renders one of page's posts.
func (p *Platform) post(r *http.Request, page state.Account, post state.Post) graph.Node {
	at := post.CreatedAt().Format(graph.TimeForm)
	values := map[string]any{
		"id": post.ID, "created_time": at, "updated_time": at, "permalink_url": p.SiteURL(r) + p.PostPath(page.Username, post.ID),
		"is_published": true, "from": pageReference(page), "status_type": "mobile_status_update",
	}
	if post.Text != "" {
		values["message"] = post.Text
	}
	if len(post.Media) > 0 {
		values["status_type"], values["attachments"] = "added_photos", graph.Edge{p.photoAttachment(r, page, post)}
	}
	if link := detailOf(post.Detail).Link; link != "" {
		values["status_type"] = "shared_story"
		values["attachments"] = graph.Edge{attachment(map[string]any{"media_type": "link", "type": "share", "url": link, "target": target("", link)})}
	}
	return graph.Node{Type: "Post", Values: values, Known: postFields, Default: []string{"created_time", "message", "id"}}
}

// pageReference renders a Page as the author of an object.
func pageReference(page state.Account) graph.Node {
	return graph.Node{
		Type: "Page", Values: map[string]any{"id": page.ID, "name": page.DisplayName},
		Known: []string{"id", "name", "username"}, Default: []string{"name", "id"},
	}
}
