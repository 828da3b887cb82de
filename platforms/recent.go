// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Lister is a Publisher that lists what an account has published lately.
type Lister interface {
	// RecentPosts lists posts of an account, the newest first. An error means that the
	// platform gave no usable answer; it is an *Error where the platform said why. The list
	// may lack posts: it proves no absence.
	RecentPosts(ctx context.Context, account Account, which Recent) ([]ListedPost, error)
}

// Recent says which posts of an account are listed.
type Recent struct {
	// Since is the earliest time at which they were published.
	Since time.Time
	// Limit is how many posts are listed at most. It is at least 1.
	Limit int
	// Replies asks for posts that hang from another one, as the cards of a tree behind the
	// first do; without it these are left out.
	Replies bool
}

// ListedPost is a post as a platform lists it.
type ListedPost struct {
	// ID names the post, and URL is where people see it; empty where the platform gives no
	// address.
	ID, URL string
	// Text is its text or, on a platform with titles, its title.
	Text string
	// At is when it was published; zero where the platform does not say.
	At time.Time
}

// PostParser is a Publisher that reads what people enter to name a post.
type PostParser interface {
	// ParsePost reads the address of a post, as people copy it from a browser or an app, or
	// its id. It asks the platform nothing. It returns false for what names no post there.
	ParsePost(account Account, entered string) (name PostName, ok bool)
	// PostHint says what a person enters and where it is found, in words that continue "enter …".
	PostHint() string
}

// PostName is what names a post.
type PostName struct {
	// ID is the platform's id of the post; empty if what was entered does not hold it.
	ID string
	// Code names the post in the address in place of the id. Two addresses of one post have
	// one code.
	Code string
	// URL is the address, without what was added to it to follow people; empty if an id was
	// entered.
	URL string
	// Other says that the platform may list the post under another address: an address that
	// no listed post has may be right all the same.
	Other bool
}

// PostParser returns what reads the names of posts on a platform; nil if nothing does.
func (r Registry) PostParser(name v1alpha1.Platform) PostParser {
	reader, _ := r[name].(PostParser)
	return reader
}
