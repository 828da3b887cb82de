// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"net/http"
	"strconv"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// mediaFields are the fields of a post that may be asked for. Those that have nothing to say here are left out of the
// answer.
var mediaFields = []string{
	"id", "ig_id", "caption", "media_type", "media_product_type", "media_url", "permalink", "shortcode", "thumbnail_url", "timestamp",
	"username", "owner", "alt_text", "is_shared_to_feed", "is_comment_enabled", "comments_count", "like_count", "children",
	"collaborators", "comments", "copyright_check_information", "legacy_instagram_media_id", "boost_eligibility_info", "view_count",
}

// readMedia is GET /{id} for a post.
func (l *login) readMedia(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(l.read...)
	if bad != nil {
		return nil, bad
	}
	post, ok := l.Store.Post(Name, c.PathValue("id"))
	if !ok || post.AccountID != account.ID {
		return nil, graph.NoObject("get", c.PathValue("id"))
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	return result(l.mediaNode(c.Request.Request, account, post).Select(fields))
}

// list is GET /{id}/media.
func (l *login) list(c *graph.Call) (any, *graph.Error) {
	account, bad := l.owner(c, l.read)
	if bad != nil {
		return nil, bad
	}
	return c.List(account, nil, func(post state.Post) graph.Node { return l.mediaNode(c.Request.Request, account, post) })
}

// mediaNode shows a post of account.
func (l *login) mediaNode(r *http.Request, account state.Account, post state.Post) graph.Node {
	kept := detailOf(post.Detail)
	values := map[string]any{
		"id": post.ID, "ig_id": scopedID(post.ID), "media_product_type": "FEED",
		"permalink": l.SiteURL(r) + postPath(post),
		"shortcode": graph.Shortcode(post.ID), "timestamp": post.CreatedAt().Format(graph.TimeForm), "username": account.Username,
		"owner":              graph.Node{Type: "IGUser", Values: map[string]any{"id": account.ID}, Known: []string{"id"}, Default: []string{"id"}},
		"is_comment_enabled": !account.Settings.CommentDisabled, "comments_count": 0, "like_count": 0,
	}
	l.addFile(r, values, kept, post.Media)
	if post.Text != "" {
		values["caption"] = post.Text
	}
	if kept.ShareToFeed != nil {
		values["is_shared_to_feed"] = *kept.ShareToFeed
	}
	if kept.Kind == kindReels {
		values["media_product_type"] = kindReels
	}
	if kept.Kind == kindCarousel {
		children := graph.Edge{}
		for i, part := range kept.Parts {
			child := map[string]any{
				"id": scopedID(post.ID + " " + strconv.Itoa(i)), "timestamp": values["timestamp"], "username": account.Username,
				"permalink": values["permalink"], "owner": values["owner"],
			}
			l.addFile(r, child, part, post.Media[i:])
			children = append(children, graph.Node{Type: "IGMedia", Values: child, Known: mediaFields, Default: []string{"id"}})
		}
		values["children"] = children
	}
	return graph.Node{Type: "IGMedia", Values: values, Known: mediaFields, Default: []string{"id"}}
}

// addFile adds what is told of what a post, or an item of a carousel, shows.
func (l *login) addFile(r *http.Request, values map[string]any, kept detail, shown []state.Media) {
	files := l.SiteURL(r) + "/_media/"
	switch kept.Kind {
	case kindCarousel:
		values["media_type"] = "CAROUSEL_ALBUM"
		return
	case kindImage:
		values["media_type"] = kindImage
	default:
		values["media_type"] = kindVideo
	}
	values["media_url"] = files + shown[0].SHA256
	if kept.Cover != nil {
		values["thumbnail_url"] = files + kept.Cover.SHA256
	}
	if kept.AltText != "" {
		values["alt_text"] = kept.AltText
	}
}
