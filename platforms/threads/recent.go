// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/permalink"
)

// RecentPosts reads the first page of the profile's posts, or of its replies.
func (p *Platform) RecentPosts(ctx context.Context, account platforms.Account, which platforms.Recent) ([]platforms.ListedPost, error) {
	edge := "threads"
	if which.Replies {
		edge = "replies"
	}
	return p.graph.Recent(ctx, account, which, meta.Listing{
		Edge: edge, Fields: "id,text,timestamp,permalink,is_reply",
		Same: func(post *meta.Post) bool { return bool(post.IsReply) == which.Replies },
	})
}

// isCode reports whether a string can be a code in an address.
func isCode(code string) bool { return text.Consists(code, 5, 64, text.Letters+text.Digits+"_-") }

// ParsePost parses an id, or an address such as https://www.threads.com/@acme/post/DAbC123, which has a code instead of
// the id.
func (p *Platform) ParsePost(_ platforms.Account, entered string) (name platforms.PostName, ok bool) {
	entered = strings.TrimSpace(entered)
	if !permalink.IsAddress(entered) && meta.IsObjectID(entered) {
		return platforms.PostName{ID: entered}, true
	}
	if at, ours := permalink.Parse(entered, permalink.Threads, permalink.ThreadsOf); ours && permalink.IsAddress(entered) {
		if code := at.After("post", "t"); isCode(code) {
			return platforms.PostName{Code: code, URL: at.URL()}, true
		}
	}
	return name, false
}

// PostHint describes where to find a post's address.
func (p *Platform) PostHint() string {
	return "the address of the post, which has /post/ and a code: choose Copy link in the menu of the post"
}
