// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"net/http"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// mediaFields are the simulated fields of a post. Fields without a value are omitted from the response.
var mediaFields = []string{
	"id", "media_product_type", "media_type", "media_url", "permalink", "owner", "username", "text", "timestamp", "shortcode",
	"children", "is_reply", "root_post", "replied_to",
}

// read handles GET /{id} for a post.
func (p *Platform) read(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopeBasic)
	if bad != nil {
		return nil, bad
	}
	post, bad := c.Post(account)
	if bad != nil {
		return nil, bad
	}
	return c.Show(p.media(c.Request.Request, account, post))
}

// remove handles DELETE /{id} for a post (Meta's "Delete Posts"). The limit of 100 deletions per day and account is not
// simulated.
func (p *Platform) remove(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopeBasic, scopeDelete)
	if bad != nil {
		return nil, bad
	}
	if bad := c.DeletePost(account); bad != nil {
		return nil, bad
	}
	return map[string]any{"success": true, "deleted_id": c.PathValue("id")}, nil
}

// list returns the handler of GET /{id}/threads, for posts that are not replies, or GET /{id}/replies.
func (p *Platform) list(replies bool, scopes ...string) graph.Handler {
	return func(c *graph.Call) (any, *graph.Error) {
		account, bad := c.Owner(scopes...)
		if bad != nil {
			return nil, bad
		}
		keep := func(post *state.Post) bool { return (post.InReplyTo != "") == replies }
		return c.List(account, keep, func(post state.Post) graph.Node { return p.media(c.Request.Request, account, post) })
	}
}

// media renders one of the account's posts.
func (p *Platform) media(r *http.Request, account state.Account, post state.Post) graph.Node {
	kept := detailOf(post.Detail)
	values := map[string]any{
		"id": post.ID, "media_product_type": "THREADS", "media_type": shownKind(kept.Kind),
		"permalink": p.SiteURL(r) + p.PostPath(account.Username, post.ID), "shortcode": graph.Shortcode(post.ID),
		"timestamp": post.CreatedAt().Format(graph.TimeForm), "username": account.Username, "owner": graph.Reference(account.ID),
		"is_reply": post.InReplyTo != "",
	}
	if post.Text != "" {
		values["text"] = post.Text
	}
	if post.InReplyTo != "" {
		values["replied_to"], values["root_post"] = graph.Reference(post.InReplyTo), graph.Reference(post.Root)
	}
	if len(post.Media) == 1 {
		values["media_url"] = p.File(r, post.Media[0])
	}
	if len(kept.Children) > 0 {
		children := graph.Edge{}
		for i, ch := range kept.Children {
			children = append(children, node(map[string]any{
				"id": ch.id(), "media_type": ch.Kind, "media_url": p.File(r, post.Media[i]), "username": values["username"],
				"timestamp": values["timestamp"], "permalink": values["permalink"], "owner": values["owner"],
			}))
		}
		values["children"] = children
	}
	return node(values)
}

func node(values map[string]any) graph.Node {
	return graph.Node{Type: "ThreadsMedia", Values: values, Known: mediaFields, Default: []string{"id"}}
}

// shownKind maps the kind of a container to the media_type of its post.
func shownKind(kind string) string {
	switch kind {
	case kindImage, kindVideo:
		return kind
	case kindCarousel:
		return "CAROUSEL_ALBUM"
	default:
		return "TEXT_POST"
	}
}
