// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/listing"
	"github.com/herald-social/herald/platforms/internal/permalink"
)

// RecentPosts reads the first page of the playlist of the channel's uploads, which lists the newest ones first. It
// makes two reads, which cost one quota unit each.
func (p *Platform) RecentPosts(ctx context.Context, account platforms.Account, which platforms.Recent) ([]platforms.ListedPost, error) {
	if which.Replies {
		return nil, nil // replies to videos are not listed
	}
	playlist, failure := p.uploads(ctx, account)
	if failure != nil {
		return nil, failure
	}
	query := url.Values{"part": {"snippet,contentDetails"}, "playlistId": {playlist}, "maxResults": {strconv.Itoa(min(which.Limit, pageSize))}}
	page, failure := get[struct {
		Items []listedVideo `json:"items"`
	}](ctx, p, "list", "/youtube/v3/playlistItems?"+query.Encode(), account.Token, p.classify)
	switch {
	case failure != nil:
		return nil, failure
	case page.Items == nil:
		return nil, p.API.NoList()
	}
	posts := make([]platforms.ListedPost, 0, len(page.Items))
	for i := range page.Items {
		video := &page.Items[i]
		id := video.Content.VideoID.String()
		if !validID(id) {
			return nil, p.API.NoList()
		}
		posts = append(posts, platforms.ListedPost{ID: id, URL: p.videoURL(id), Text: video.Snippet.Title.String(), At: video.Snippet.PublishedAt.Time()})
	}
	return listing.Newest(posts, which), nil
}

// idLength is the length of the video ids in addresses.
const idLength = 11

// ParsePost parses a video's id or address: the address of its page or Short, or the one from the share button.
func (p *Platform) ParsePost(_ platforms.Account, entered string) (name platforms.PostName, ok bool) {
	name = platforms.PostName{ID: strings.TrimSpace(entered)}
	isAddress := permalink.IsAddress(name.ID)
	if isAddress {
		at, ours := permalink.Parse(name.ID, permalink.YouTube, permalink.YouTuBe)
		switch name.ID = ""; {
		case ours && at.Host == permalink.YouTuBe:
			name.ID = at.Parts[0]
		case ours:
			name.ID = cmp.Or(at.Query.Get("v"), at.After("shorts", "live", "embed", "video"))
		}
	}
	if !text.Consists(name.ID, idLength, idLength, idCharacters) {
		return name, false
	}
	if isAddress {
		name.URL = p.videoURL(name.ID)
	}
	return name, true
}

// PostHint describes where to find a post's address.
func (p *Platform) PostHint() string {
	return "the address of the video, from Share or from YouTube Studio. Its id has 11 characters"
}
