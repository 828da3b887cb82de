// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"net/url"
	"strconv"

	"github.com/herald-social/herald/platforms"
)

// First reads the first page of an account's listing, which has the newest entries first (Graph API, "Paginated
// Results"). limit bounds the page.
func First[E any](ctx context.Context, g *Graph, path string, which platforms.Recent, limit int, fields string, token platforms.Token) ([]E, error) {
	query := url.Values{
		"fields": {fields},
		"since":  {strconv.FormatInt(which.Since.Unix()-1, 10)},
		"limit":  {strconv.Itoa(limit)},
	}
	found, bad := Get[page[E]](ctx, g, "list", path+"?"+query.Encode(), token)
	switch {
	case bad != nil:
		return nil, bad.Error
	case found.Data == nil:
		return nil, g.NoList()
	}
	return found.Data, nil
}

// Recent reads the first page of an account's listing and returns the posts that where.Same accepts.
func (c *Containers) Recent(ctx context.Context, account platforms.Account, which platforms.Recent, where Listing) ([]Post, error) {
	found, err := First[Post](ctx, &c.Graph, "/"+url.PathEscape(account.ID)+"/"+where.Edge, which, pageSize, where.Fields, account.Token)
	if err != nil {
		return nil, err
	}
	var posts []Post
	for i := range found {
		if !ValidID(found[i].ID.String()) {
			return nil, c.NoList()
		}
		if where.Same(&found[i]) {
			posts = append(posts, found[i])
		}
	}
	return posts, nil
}
