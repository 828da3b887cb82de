// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/listing"
	"github.com/herald-social/herald/platforms/internal/permalink"
)

// maxListed is the maximum page size of com.atproto.repo.listRecords.
const maxListed = 100

// RecentPosts reads the first page of the account's posts, in the order of their keys.
func (p *Platform) RecentPosts(ctx context.Context, account platforms.Account, which platforms.Recent) ([]platforms.ListedPost, error) {
	query := url.Values{"repo": {account.ID}, "collection": {collection}, "limit": {strconv.Itoa(maxListed)}}
	resp, failure := p.read(ctx, "list", "/xrpc/com.atproto.repo.listRecords?"+query.Encode(), account.Token)
	if failure != nil {
		return nil, failure
	}
	if resp.Status != http.StatusOK {
		failure, _ := p.classify(resp)
		return nil, failure
	}
	page, ok := jsondoc.Decode[struct {
		Records []listed `json:"records"`
	}](resp.Body)
	if !ok || page.Records == nil {
		return nil, p.api.NoList()
	}
	var out []platforms.ListedPost
	for i := range page.Records {
		post := &page.Records[i]
		key := post.key(account.ID)
		if key == "" || (post.Value.Reply.Root.URI != "") != which.Replies {
			continue
		}
		out = append(out, platforms.ListedPost{
			ID: key, URL: p.postURL(account.ID, key), Text: post.Value.Text.String(), At: post.Value.CreatedAt.Time(),
		})
	}
	return listing.Newest(out, which), nil
}

// ParsePost parses a record key, or an address such as https://bsky.app/profile/acme.example/post/3k….
func (p *Platform) ParsePost(account platforms.Account, entered string) (name platforms.PostName, ok bool) {
	key := strings.TrimSpace(entered)
	isAddress := permalink.IsAddress(key)
	if isAddress {
		at, ours := permalink.Parse(key, permalink.Bluesky)
		if key = ""; ours {
			key = at.After("post")
		}
	}
	if !isKey(key) {
		return name, false
	}
	name = platforms.PostName{ID: key}
	if isAddress {
		name.URL = p.postURL(account.ID, key)
	}
	return name, true
}

// PostHint describes where to find a post's address.
func (p *Platform) PostHint() string {
	return "the address of the post, which has /post/ and 13 letters and digits: open its menu and choose Copy link to post"
}
