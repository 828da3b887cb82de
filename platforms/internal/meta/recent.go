// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/listing"
)

// First reads the first page of an account's listing, which lists the newest entries first (Graph API, "Paginated
// Results"). limit is the page size.
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

// Recent returns the posts on the first page of an account's listing that where.Same accepts.
func (c *Containers) Recent(ctx context.Context, account platforms.Account, which platforms.Recent, where Listing) ([]platforms.ListedPost, error) {
	found, err := First[Post](ctx, &c.Graph, "/"+url.PathEscape(account.ID)+"/"+where.Edge, which, pageSize, where.Fields, account.Token)
	if err != nil {
		return nil, err
	}
	posts := make([]platforms.ListedPost, 0, len(found))
	for i := range found {
		post := &found[i]
		if !ValidID(post.ID.String()) {
			return nil, c.NoList()
		}
		if where.Same(post) {
			posts = append(posts, platforms.ListedPost{
				ID: post.ID.String(), URL: post.Permalink.Web(), Text: cmp.Or(post.Text, post.Caption).String(), At: ParseTime(post.Timestamp),
			})
		}
	}
	return listing.Newest(posts, which), nil
}
