// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"context"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/listing"
	"github.com/herald-social/herald/platforms/internal/permalink"
)

// RecentPosts reads the first page of the account's posts.
func (p *Platform) RecentPosts(ctx context.Context, account platforms.Account, which platforms.Recent) ([]platforms.ListedPost, error) {
	posts, failure := p.page(ctx, account, "")
	if failure != nil {
		return nil, failure
	}
	var out []platforms.ListedPost
	for i := range posts {
		s := &posts[i]
		if s.Reblog.Present || (s.InReplyTo != "") != which.Replies {
			continue
		}
		out = append(out, platforms.ListedPost{ID: s.ID.String(), URL: s.URL.Web(), Text: plain(s.Content.String()), At: s.created()})
	}
	return listing.Newest(out, which), nil
}

// ParsePost parses an id, or an address on the account's server, such as
// https://mastodon.example/@acme/109300000000000001. The same post has a different id on another server.
func (p *Platform) ParsePost(account platforms.Account, entered string) (name platforms.PostName, ok bool) {
	id := strings.TrimSpace(entered)
	if !permalink.IsAddress(id) {
		return platforms.PostName{ID: id}, text.Consists(id, 1, 20, text.Digits)
	}
	at, ours := permalink.Parse(id)
	host := strings.TrimPrefix(hostOf(account), "www.")
	host, _, _ = strings.Cut(host, ":")
	if !ours || host != "" && !strings.EqualFold(at.Host, host) || len(at.Parts) < 2 {
		return name, false
	}
	owner := at.Parts[len(at.Parts)-2]
	if local := strings.HasPrefix(owner, "@") && strings.Count(owner, "@") == 1; !local && owner != "statuses" || !validID(at.Last()) {
		return name, false
	}
	return platforms.PostName{ID: at.Last(), URL: at.URL()}, true
}

// PostHint describes where to find a post's address.
func (p *Platform) PostHint() string {
	return "the address of the post on the account's own server, which ends in a number: open its menu and choose Copy link to post"
}
