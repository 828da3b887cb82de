// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/base64"
	"net/url"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

// TimeForm is how a Graph API writes instants: in whole seconds.
const TimeForm = "2006-01-02T15:04:05-0700"

const (
	defaultLimit = 25
	maxLimit     = 100
)

// List answers a page of an account's posts that keep lets through, newest first. node shows one of them.
func (c *Call) List(author state.Account, keep func(*state.Post) bool, node func(state.Post) Node) (any, *Error) {
	part := c.Params.page()
	fields := c.Params.Fields()
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	part.Lag, part.Keep = c.ListLag, keep
	posts, more, err := c.api.Store.Timeline(author.Key, part)
	if err != nil {
		return nil, c.Broken("list posts", err)
	}
	nodes := make(Edge, len(posts))
	for i, post := range posts {
		nodes[i] = node(post)
	}
	out, bad := selectEdge(nodes, fields)
	if bad != nil || len(posts) == 0 {
		return out, bad
	}
	out["paging"] = c.paging(posts, more)
	return out, nil
}

// paging names the pages around this one. The address of the next one carries the token of the call, as Graph's own does:
// clients follow it as it stands.
func (c *Call) paging(posts []state.Post, more bool) map[string]any {
	before, after := cursor(posts[0].Stamp), cursor(posts[len(posts)-1].Stamp)
	out := map[string]any{"cursors": map[string]string{"before": before, "after": after}}
	if more && !c.api.CursorsOnly {
		query := url.Values{}
		for name, value := range c.Params.values {
			query.Set(name, value)
		}
		query.Set("after", after)
		if token, bad := c.Token(); bad == nil {
			query.Set(tokenParam, token)
		}
		out["next"] = c.api.APIURL(c.Request.Request) + c.URL.Path + "?" + query.Encode()
	}
	return out
}

// page reads which part of a listing is asked for.
func (p *Params) page() state.Range {
	return state.Range{
		// Instants are shown in whole seconds, and the first one is part of the range.
		From: p.Time("since").Truncate(time.Second), Limit: p.Integer("limit", defaultLimit, 1, maxLimit),
		Before: p.cursor("after"), // what follows in the list is older
	}
}

// cursor names a post's place in a listing.
func cursor(at state.Stamp) string { return base64.RawURLEncoding.EncodeToString([]byte(at.String())) }

func (p *Params) cursor(name string) state.Stamp {
	value := p.Text(name)
	if value == "" {
		return state.Stamp{}
	}
	content, err := base64.RawURLEncoding.DecodeString(value)
	at, ok := state.ParseStamp(string(content))
	if err != nil || !ok {
		p.Rejectf("Invalid cursors values")
	}
	return at
}
