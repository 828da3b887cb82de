// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/permalink"
)

// RecentPosts reads the first page of the account's media.
func (p *Platform) RecentPosts(ctx context.Context, account platforms.Account, which platforms.Recent) ([]platforms.ListedPost, error) {
	if which.Replies {
		return nil, nil // replies to Instagram posts are not listed
	}
	return p.hostOf(account.Token).Recent(ctx, account, which, meta.Listing{
		Edge: "media", Fields: "id,caption,timestamp,permalink,media_product_type",
		Same: func(post *meta.Post) bool { return post.ProductType != "STORY" },
	})
}

// isCode reports whether a string can be a shortcode in an address.
func isCode(code string) bool { return text.Consists(code, 5, 64, text.Letters+text.Digits+"_-") }

// ParsePost parses an id, or an address such as https://www.instagram.com/p/DAbC123/, which has a shortcode instead of
// the id.
func (p *Platform) ParsePost(_ platforms.Account, entered string) (name platforms.PostName, ok bool) {
	entered = strings.TrimSpace(entered)
	if !permalink.IsAddress(entered) && meta.IsObjectID(entered) {
		return platforms.PostName{ID: entered}, true
	}
	// Addresses shared from the app start with /share/ and have a different code.
	if at, ours := permalink.Parse(entered, permalink.Instagram); ours && permalink.IsAddress(entered) && at.Parts[0] != "share" {
		if code := at.After("p", "reel", "reels", "tv"); isCode(code) {
			return platforms.PostName{Code: code, URL: at.URL()}, true
		}
	}
	return name, false
}

// PostHint describes where to find a post's address.
func (p *Platform) PostHint() string {
	return "the address of the post, which has /p/ or /reel/ and a code: choose Copy link in the menu of the post"
}
