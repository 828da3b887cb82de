// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"net/http"
	"strconv"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// mediaFields are the simulated fields of a post. Fields without a value are omitted from the response.
var mediaFields = []string{
	"id", "caption", "media_type", "media_product_type", "media_url", "permalink", "shortcode", "timestamp", "username", "owner",
	"is_comment_enabled", "children",
}

// readMedia handles GET /{id} for a post.
func (l *login) readMedia(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(l.read...)
	if bad != nil {
		return nil, bad
	}
	post, bad := c.Post(account)
	if bad != nil {
		return nil, bad
	}
	return c.Show(l.mediaNode(c.Request.Request, account, post))
}

// remove handles DELETE /{id}. Instagram does not let a client delete a published post (IG Media reference: "This
// operation is not supported").
func (l *login) remove(c *graph.Call) (any, *graph.Error) {
	if _, bad := c.Account(l.write...); bad != nil {
		return nil, bad
	}
	return nil, graph.NoObject("delete", c.PathValue("id"))
}

// list handles GET /{id}/media.
func (l *login) list(c *graph.Call) (any, *graph.Error) {
	account, bad := l.owner(c, l.read)
	if bad != nil {
		return nil, bad
	}
	return c.List(account, nil, func(post state.Post) graph.Node { return l.mediaNode(c.Request.Request, account, post) })
}

// mediaNode renders one of account's posts.
func (l *login) mediaNode(r *http.Request, account state.Account, post state.Post) graph.Node {
	kept := detailOf(post.Detail)
	values := map[string]any{
		"id": post.ID, "media_product_type": "FEED", "permalink": l.SiteURL(r) + postPath(post),
		"shortcode": graph.Shortcode(post.ID), "timestamp": post.CreatedAt().Format(graph.TimeForm), "username": account.Username,
		"owner": graph.Reference(account.ID), "is_comment_enabled": !account.Settings.CommentDisabled,
	}
	if post.Text != "" {
		values["caption"] = post.Text
	}
	if kept.Kind == kindReels {
		values["media_product_type"] = kindReels
	}
	if kept.Kind != kindCarousel {
		l.addFile(r, values, kept.Kind, post.Media[0])
		return node(values)
	}
	children := graph.Edge{}
	for i, part := range kept.Parts {
		child := map[string]any{
			"id": scopedID(post.ID + " " + strconv.Itoa(i)), "timestamp": values["timestamp"], "username": account.Username,
			"permalink": values["permalink"], "owner": values["owner"],
		}
		l.addFile(r, child, part.Kind, post.Media[i])
		children = append(children, node(child))
	}
	values["media_type"], values["children"] = "CAROUSEL_ALBUM", children
	return node(values)
}

func node(values map[string]any) graph.Node {
	return graph.Node{Type: "IGMedia", Values: values, Known: mediaFields, Default: []string{"id"}}
}

// addFile adds an image's or video's fields.
func (l *login) addFile(r *http.Request, values map[string]any, kind string, file state.Media) {
	values["media_url"], values["media_type"] = l.File(r, file), kindVideo
	if kind == kindImage {
		values["media_type"] = kindImage
	}
}
