// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/base64"
	"net/url"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

// TimeForm is the time format of the Graph APIs, in whole seconds.
const TimeForm = "2006-01-02T15:04:05-0700"

const (
	defaultLimit = 25
	maxLimit     = 100
)

// List returns a page of an account's posts, newest first. keep filters the posts, and node renders one.
func (c *Call) List(author state.Account, keep func(*state.Post) bool, node func(state.Post) Node) (any, *Error) {
	part := c.Params.page()
	fields := c.Params.Fields()
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	part.Lag, part.Keep = c.ListLag, keep
	posts, more, err := c.api.Store.Timeline(author.Key, part)
	if err != nil {
		return nil, c.InternalError("list posts", err)
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

// paging returns a page's links. As in the real API, the next address carries the call's token, because clients follow it unchanged.
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

// page reads a listing's requested range.
func (p *Params) page() state.Range {
	return state.Range{
		// Responses show whole seconds, and the range includes its start.
		From: p.Time("since").Truncate(time.Second), Limit: p.Integer("limit", defaultLimit, 1, maxLimit),
		Before: p.cursor("after"), // the list continues with older posts
	}
}

// cursor encodes a post's position in a listing.
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
