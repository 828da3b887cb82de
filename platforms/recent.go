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
	// RecentPosts lists an account's posts, newest first. An error means that the platform gave no usable response; it
	// is an *Error if the platform gave a reason. The list may be incomplete, so it does not prove absence.
	RecentPosts(ctx context.Context, account Account, which Recent) ([]ListedPost, error)
}

// Recent selects the posts to list.
type Recent struct {
	// Since is the earliest time of publication.
	Since time.Time
	// Limit is the maximum number of posts, at least 1.
	Limit int
	// Replies selects replies, such as all cards of a tree except the first, instead of other posts.
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

// PostParser is a Publisher that recognizes posts in user input.
type PostParser interface {
	// ParsePost parses a post's id, or its address as copied from a browser or an app. It does not call the platform.
	// It returns false if the input does not identify one of this platform's posts.
	ParsePost(account Account, entered string) (name PostName, ok bool)
	// PostHint describes the expected input and where users find it, phrased to follow "enter …".
	PostHint() string
}

// PostName identifies a post.
type PostName struct {
	// ID is the platform's id for the post; empty if the input does not contain it.
	ID string
	// Code identifies the post in its address, instead of the id. All of a post's addresses have the same code.
	Code string
	// URL is the address without tracking parameters; empty if the input is an id.
	URL string
	// Other reports whether the platform may list the post under a different address. An address that matches no
	// listed post may then still be correct.
	Other bool
}

// PostParser returns the platform's PostParser, or nil if it has none.
func (r Registry) PostParser(name v1alpha1.Platform) PostParser {
	reader, _ := r[name].(PostParser)
	return reader
}
