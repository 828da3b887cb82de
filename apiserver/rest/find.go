// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/strictjson"
	"github.com/herald-social/herald/apiserver/wire"
)

// The query parameters of listPosts in version 2.
const (
	paramStatus     = "status"
	paramPlatform   = "platform"
	paramCategory   = "category"
	paramConnection = "connection_id"
	paramFrom       = "from"
	paramTo         = "to"
	paramWords      = "q"
	paramSort       = "sort"
	paramCursor     = "cursor"
	paramPage       = "page"
	paramLimit      = "limit"
)

// sorting is the order of a list.
type sorting string

const (
	newestFirst sorting = "-display_at"
	oldestFirst sorting = "display_at"
)

// findPosts is listPosts of version 2. A page number selects the list of version 1, which has no search, period or
// order: positions shift while posts are added, so only a cursor continues a list without gaps.
func (h *Handler) findPosts(ctx context.Context, c *call, out *answer) error {
	if c.query.Has(paramPage) {
		return h.numberedPage(ctx, c, out)
	}
	q := &postindex.Search{
		Status: c.listStatus(), Platform: c.platform(h), From: c.time(paramFrom), To: c.time(paramTo),
		SoonestFirst: oneOf(c, paramSort, newestFirst, oldestFirst) == oldestFirst, Cursor: c.cursor(), Limit: c.whole(paramLimit, bridge.DefaultLimit),
		Conditions: postindex.Conditions{
			Category: oneOf(c, paramCategory, v1alpha1.CategoryVideo, v1alpha1.CategoryImage, v1alpha1.CategoryText, v1alpha1.CategoryTree),
			Account:  c.short(paramConnection), Words: bridge.QueryWords(c.short(paramWords)),
		},
	}
	if err := c.refused(); err != nil {
		return err
	}
	page, err := h.service.SearchPosts(ctx, c.caller, q)
	if err != nil {
		return err
	}
	out.body = wire.AppendPostPageV2(out.body, &page)
	return nil
}

func (h *Handler) numberedPage(ctx context.Context, c *call, out *answer) error {
	for _, name := range []string{paramCategory, paramConnection, paramFrom, paramTo, paramWords, paramSort, paramCursor} {
		if c.query.Has(name) {
			c.refuse(paramPage, fmt.Sprintf("cannot be combined with %s; omit it, and follow next_cursor", name))
		}
	}
	q := c.listQuery(h)
	if err := c.refused(); err != nil {
		return err
	}
	page, err := h.service.ListPosts(ctx, c.caller, q)
	if err != nil {
		return err
	}
	out.body = wire.AppendPostPageV2(out.body, &page)
	return nil
}

// time returns a parameter in RFC 3339 format, rounded up to whole milliseconds as display times are stored; zero if it
// is missing.
func (c *call) time(name string) time.Time {
	value, given := c.parameter(name)
	if !given {
		return time.Time{}
	}
	at, ok := strictjson.ParseTime(value)
	if !ok {
		c.refuse(name, "must be a time in RFC 3339 form, such as 2026-12-01T09:00:00Z")
		return time.Time{}
	}
	if whole := at.Truncate(time.Millisecond); !whole.Equal(at) {
		return whole.Add(time.Millisecond)
	}
	return at
}

// short returns a text parameter of limited length, or "".
func (c *call) short(name string) string {
	value, given := c.parameter(name)
	switch length := utf8.RuneCountInString(value); {
	case !given:
		return ""
	case length == 0:
		c.refuse(name, "must not be empty")
	case length > bridge.MaxQuery:
		c.refuse(name, fmt.Sprintf("must have at most %d characters", bridge.MaxQuery))
	default:
		return value
	}
	return ""
}

func (c *call) cursor() *postindex.Cursor {
	value, given := c.parameter(paramCursor)
	if !given {
		return nil
	}
	cursor, ok := wire.ParseCursor(value)
	if !ok {
		c.refuse(paramCursor, "must be a next_cursor or previous_cursor of an earlier page")
	}
	return cursor
}
