// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/listing"
	"github.com/herald-social/herald/platforms/internal/permalink"
)

// minListed is the minimum value of max_results in GET /2/users/{id}/tweets (docs.x.com, "Get Posts").
const minListed = 5

// RecentPosts reads the first page of the account's timeline, which lists the newest posts first.
func (p *Platform) RecentPosts(ctx context.Context, account platforms.Account, which platforms.Recent) ([]platforms.ListedPost, error) {
	var failure *platforms.Error
	for _, names := range fieldNames {
		query := url.Values{
			names.parameter: {names.fields},
			"max_results":   {strconv.Itoa(min(max(which.Limit, minListed), pageSize))},
			"exclude":       {"retweets"},
		}
		if since := idBefore(which.Since); since != "" {
			query.Set("since_id", since)
		}
		resp, refused := p.read(ctx, "list", "/2/users/"+url.PathEscape(account.ID)+"/tweets?"+query.Encode(), account.Token)
		if failure = refused; failure == nil {
			page, bad := p.readPage(resp)
			if bad != nil {
				return nil, bad
			}
			return p.listed(account, page.Data, which), nil
		}
		if failure.Class != platforms.ClassPermanent {
			break
		}
	}
	return nil, failure
}

func (p *Platform) listed(account platforms.Account, posts []listedPost, which platforms.Recent) []platforms.ListedPost {
	var out []platforms.ListedPost
	for i := range posts {
		post := &posts[i]
		if (post.repliedTo() != "") != which.Replies {
			continue
		}
		text := post.Text.String()
		for _, note := range []listedText{post.Note, post.NotePost} {
			if note.Text != "" {
				text = note.Text.String()
			}
		}
		id := post.ID.String()
		out = append(out, platforms.ListedPost{ID: id, URL: p.postURL(account, id), Text: entities.Replace(text), At: post.created()})
	}
	return listing.Newest(out, which)
}

// ParsePost parses an id, or an address such as https://x.com/acme/status/1991.
func (p *Platform) ParsePost(account platforms.Account, entered string) (name platforms.PostName, ok bool) {
	id := strings.TrimSpace(entered)
	isAddress := permalink.IsAddress(id)
	if isAddress {
		at, ours := permalink.Parse(id, permalink.X, permalink.Twitter)
		if id = ""; ours {
			id = at.After("status", "statuses")
		}
	}
	if !text.Consists(id, 1, 20, text.Digits) {
		return name, false
	}
	name = platforms.PostName{ID: id}
	if isAddress {
		name.URL = p.postURL(account, id)
	}
	return name, true
}

// PostHint describes where to find a post's address.
func (p *Platform) PostHint() string {
	return "the address of the post, which has /status/ and a number: open the post and copy the address, or use Share, Copy link"
}
