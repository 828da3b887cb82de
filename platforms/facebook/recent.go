// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/listing"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/permalink"
)

// RecentPosts reads the first page of the Page's published posts.
func (p *Platform) RecentPosts(ctx context.Context, account platforms.Account, which platforms.Recent) ([]platforms.ListedPost, error) {
	if which.Replies {
		return nil, nil // replies to Facebook posts are not listed
	}
	found, err := meta.First[entry](ctx, &p.graph, "/"+url.PathEscape(account.ID)+"/published_posts", which, pageSize, "id,message,created_time,permalink_url", account.Token)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error comes from the platform
	}
	posts := make([]platforms.ListedPost, 0, len(found))
	for i := range found {
		post := &found[i]
		if !meta.ValidID(post.ID.String()) {
			return nil, p.graph.NoList()
		}
		posts = append(posts, platforms.ListedPost{ID: post.ID.String(), URL: p.postURL(post), Text: post.Message.String(), At: meta.ParseTime(post.CreatedTime)})
	}
	return listing.Newest(posts, which), nil
}

// isNumber reports whether a string can be a Page's id or a post's number.
func isNumber(id string) bool { return text.Consists(id, 1, 20, text.Digits) }

// isPagePost reports whether a string can be a post's id: its number, prefixed with its Page's id.
func isPagePost(id string) bool {
	page, post, _ := strings.Cut(id, "_")
	return isNumber(page) && isNumber(post)
}

// isCode reports whether a string can be a code that replaces an id in addresses: pfbid followed by letters, or another
// code in an address from the Share button.
func isCode(code string) bool { return text.Consists(code, 5, 128, text.Letters+text.Digits+"_-") }

// ParsePost parses an id or an address. Facebook has many addresses for one post. A few contain the post's number; most
// have a code, and no reference documents how to convert it to an id.
func (p *Platform) ParsePost(account platforms.Account, entered string) (name platforms.PostName, ok bool) {
	entered = strings.TrimSpace(entered)
	if !permalink.IsAddress(entered) {
		if id := pagePost(account.ID, entered); id != "" {
			return platforms.PostName{ID: id}, true
		}
		return name, false
	}
	at, ok := permalink.Parse(entered, permalink.Facebook, permalink.FB, permalink.FBWatch)
	if !ok {
		return name, false
	}
	name = platforms.PostName{URL: at.URL("story_fbid", "id", "fbid", "v"), Other: true}
	story := at.Query.Get("story_fbid")
	switch {
	case story != "":
		name.ID, name.Code = pagePost(cmp.Or(account.ID, at.Query.Get("id")), story), story
	case slices.Contains(at.Parts, "posts"):
		// The last segment may follow a slug made from the text.
		name.ID, name.Code = pagePost(account.ID, at.Last()), at.Last()
	case slices.Contains(at.Parts, "videos"):
		// The number may also follow a slug made from the video's title. It differs from the number of the post.
		name.Code = at.Last()
	case isPagePost(at.Last()):
		name.ID = at.Last()
	case at.Host == permalink.FBWatch:
		name.Code = at.Last()
	default:
		// The number of a photo or video differs from the number of its post.
		name.Code = cmp.Or(at.Query.Get("fbid"), at.Query.Get("v"), at.After("p", "v", "r", "reel"))
	}
	if name.ID == "" && !isCode(name.Code) {
		return name, false
	}
	if name.ID != "" {
		name.Code = ""
	}
	return name, true
}

// pagePost returns the id of a Page's post, from that id or from the post's number. An address may contain the id of
// the Page's profile instead of the id of the Page; the account's id takes precedence.
func pagePost(page, post string) string {
	switch {
	case isPagePost(post):
		return post
	case isNumber(post) && isNumber(page):
		return page + "_" + post
	default:
		return ""
	}
}

// PostHint describes where to find a post's address.
func (p *Platform) PostHint() string {
	return "the address of the post: click the time below the name of the Page, and copy the address"
}
