// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Lister is a Publisher that lists an account's recent posts.
type Lister interface {
	// RecentPosts lists posts of an account, newest first. An error means that the platform gave no usable answer; it
	// is an *Error if the platform gave a reason. The list may be incomplete: it does not prove absence.
	RecentPosts(ctx context.Context, account Account, which Recent) ([]ListedPost, error)
}

// Recent selects the posts to list.
type Recent struct {
	// Since is the earliest time of publication.
	Since time.Time
	// Limit is the maximum number of posts, at least 1.
	Limit int
	// Replies selects replies, such as all cards of a tree but the first, instead of other posts.
	Replies bool
}

// ListedPost is a post in a platform's listing.
type ListedPost struct {
	// ID is the platform's id, and URL the public address; empty if the platform returns none.
	ID, URL string
	// Text is the text of the post or, on a platform with titles, its title.
	Text string
	// At is the time of publication; zero if unknown.
	At time.Time
}

// PostParser is a Publisher that parses user input that identifies a post.
type PostParser interface {
	// ParsePost parses the address of a post, as copied from a browser or an app, or its id. It makes no call to the
	// platform. It returns false if the input does not identify a post of this platform.
	ParsePost(account Account, entered string) (name PostName, ok bool)
	// PostHint describes the expected input and where to find it, in words that continue "enter …".
	PostHint() string
}

// PostName identifies a post.
type PostName struct {
	// ID is the platform's id of the post; empty if the input does not contain it.
	ID string
	// Code identifies the post in the address instead of the id. All addresses of a post have the same code.
	Code string
	// URL is the address without tracking parameters; empty if the input is an id.
	URL string
	// Other reports whether the platform may list the post under another address: an address that matches no listed
	// post may still be correct.
	Other bool
}

// PostParser returns the platform's parser of post addresses; nil if it has none.
func (r Registry) PostParser(name v1alpha1.Platform) PostParser {
	reader, _ := r[name].(PostParser)
	return reader
}
