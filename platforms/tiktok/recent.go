// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"cmp"
	"context"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/listing"
	"github.com/herald-social/herald/platforms/internal/permalink"
)

// RecentPosts reads the first page of the account's public posts, which lists the newest posts first.
func (p *Platform) RecentPosts(ctx context.Context, account platforms.Account, which platforms.Recent) ([]platforms.ListedPost, error) {
	if which.Replies {
		return nil, nil // replies to TikTok posts are not listed
	}
	page, bad := callAPI[struct {
		Videos []listedPost `json:"videos"`
	}](ctx, p, "list", listPath, account.Token, map[string]any{"max_count": min(which.Limit, pageSize)})
	switch {
	case bad != nil:
		return nil, bad.Error
	case page.Videos == nil:
		return nil, p.API.NoList()
	}
	posts := make([]platforms.ListedPost, 0, len(page.Videos))
	for i := range page.Videos {
		post := &page.Videos[i]
		id := post.ID.String()
		if !validPostID(id) {
			return nil, p.API.NoList()
		}
		posts = append(posts, platforms.ListedPost{
			ID: id, URL: withoutQuery(post.ShareURL), Text: cmp.Or(post.Description, post.Title).String(), At: post.created(),
		})
	}
	return listing.Newest(posts, which), nil
}

// withoutQuery returns a post's listed URL without its query, which identifies the user who shared it.
func withoutQuery(listed jsondoc.Text) string {
	address, _, _ := strings.Cut(listed.Web(), "?")
	return address
}

// ParsePost parses an id, or an address such as https://www.tiktok.com/@acme/video/7106594312292453675.
func (p *Platform) ParsePost(_ platforms.Account, entered string) (name platforms.PostName, ok bool) {
	name = platforms.PostName{ID: strings.TrimSpace(entered)}
	if permalink.IsAddress(name.ID) {
		at, ours := permalink.Parse(name.ID, permalink.TikTok)
		if name.ID = ""; ours {
			name.ID, name.URL = at.After("video", "photo"), at.URL()
		}
	}
	if !validPostID(name.ID) {
		return name, false
	}
	return name, true
}

// PostHint describes where to find a post's address.
func (p *Platform) PostHint() string {
	return "the address of the post, which has /video/ or /photo/ and a number: open the post in a browser. A short address, of vm.tiktok.com, becomes the long one there"
}
