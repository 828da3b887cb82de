// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"cmp"
	"net/http"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// mediaFields are the fields of a post that may be asked for. Those that have nothing to say here are left out of the
// answer.
var mediaFields = []string{
	"id", "media_product_type", "media_type", "media_url", "gif_url", "permalink", "owner", "username", "text", "timestamp",
	"shortcode", "thumbnail_url", "children", "is_quote_post", "quoted_post", "reposted_post", "alt_text", "link_attachment_url",
	"has_replies", "is_reply", "is_reply_owned_by_me", "root_post", "replied_to", "hide_status", "reply_audience", "topic_tag",
	"poll_attachment", "location_id", "location", "ghost_post_status", "ghost_post_expiration_timestamp", "is_verified",
	"profile_picture_url", "text_attachment", "text_entities", "is_spoiler_media", "allowlisted_country_codes",
}

// read is GET /{id} for a post.
func (p *Platform) read(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopeBasic)
	if bad != nil {
		return nil, bad
	}
	post, ok := p.Store.Post(Name, c.PathValue("id"))
	if !ok || post.AccountID != account.ID {
		return nil, graph.NoObject("get", c.PathValue("id"))
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	return result(p.media(c.Request.Request, account, post).Select(fields))
}

// posts is GET /{id}/threads: what the account posted of its own accord.
func (p *Platform) posts(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic)
	if bad != nil {
		return nil, bad
	}
	return p.list(c, account, false)
}

// replies is GET /{id}/replies.
func (p *Platform) replies(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic, scopeReadReplies)
	if bad != nil {
		return nil, bad
	}
	return p.list(c, account, true)
}

func (p *Platform) list(c *graph.Call, account state.Account, replies bool) (any, *graph.Error) {
	keep := func(post *state.Post) bool { return (post.InReplyTo != "") == replies }
	return c.List(account, keep, func(post state.Post) graph.Node { return p.media(c.Request.Request, account, post) })
}

// media shows a post of account.
func (p *Platform) media(r *http.Request, account state.Account, post state.Post) graph.Node {
	kept := detailOf(post.Detail)
	values := map[string]any{
		"id": post.ID, "media_product_type": "THREADS", "media_type": shownKind(kept.Kind),
		"permalink": p.SiteURL(r) + p.PostPath(account.Username, post.ID), "shortcode": graph.Shortcode(post.ID),
		"timestamp": post.CreatedAt().Format(graph.TimeForm), "username": account.Username, "owner": reference(account.ID),
		"is_quote_post": kept.Quote != "", "is_reply": post.InReplyTo != "", "hide_status": "NOT_HUSHED",
		"has_replies": p.hasReplies(post), "reply_audience": cmp.Or(kept.ReplyControl, "everyone"), "is_verified": false,
	}
	p.addFiles(values, p.SiteURL(r), post, kept)
	if post.InReplyTo != "" {
		values["replied_to"], values["root_post"] = reference(post.InReplyTo), reference(post.Root)
		values["is_reply_owned_by_me"] = true
	}
	for name, value := range map[string]string{"text": post.Text, "topic_tag": kept.Topic, "link_attachment_url": post.Link} {
		if value != "" {
			values[name] = value
		}
	}
	if kept.Quote != "" {
		values["quoted_post"] = reference(kept.Quote)
	}
	return graph.Node{Type: "ThreadsMedia", Values: values, Known: mediaFields, Default: []string{"id"}}
}

// shownKind is how a post names what its container called kind.
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

// addFiles shows the files of a post: its own, or those of its children.
func (p *Platform) addFiles(values map[string]any, site string, post state.Post, kept detail) {
	if kept.Spoiler {
		values["is_spoiler_media"] = true
	}
	address := func(file state.Media) string { return site + "/_media/" + file.SHA256 }
	if len(post.Media) == 1 {
		values["media_url"] = address(post.Media[0])
		if kept.Alt != "" {
			values["alt_text"] = kept.Alt
		}
	}
	if len(kept.Children) == 0 {
		return
	}
	children := graph.Edge{}
	for i, ch := range kept.Children {
		shown := map[string]any{
			"id": ch.id(), "media_type": ch.Kind, "media_url": address(post.Media[i]), "username": values["username"],
			"timestamp": values["timestamp"], "permalink": values["permalink"], "owner": values["owner"],
		}
		if ch.Alt != "" {
			shown["alt_text"] = ch.Alt
		}
		children = append(children, graph.Node{Type: "ThreadsMedia", Values: shown, Known: mediaFields, Default: []string{"id"}})
	}
	values["children"] = children
}

// reference is a node of which nothing but the id is shown.
func reference(id string) graph.Node {
	return graph.Node{Type: "Node", Values: map[string]any{"id": id}, Known: []string{"id"}, Default: []string{"id"}}
}

func (p *Platform) hasReplies(post state.Post) bool {
	for _, other := range p.Store.Chain(Name, post.Root) {
		if other.InReplyTo == post.ID {
			return true
		}
	}
	return false
}
