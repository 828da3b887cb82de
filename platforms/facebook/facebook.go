// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facebook publishes to Facebook Pages by the Graph API, with Page
// tokens. Personal profiles cannot be published to.
//
// The one irrevocable call is POST /{page}/feed. The graph offers no key that
// would make it repeatable, so a call whose answer was lost is looked for among
// the Page's published posts; see Lookup.
package facebook

import (
	"cmp"
	"context"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// DefaultAPIURL is where the Graph API is served.
	DefaultAPIURL = "https://graph.facebook.com"
	// DefaultWebURL is where people read posts.
	DefaultWebURL = "https://www.facebook.com"
	// DefaultVersion is the version of the Graph API that this package was
	// written against.
	DefaultVersion = "v25.0"

	// DefaultListingLag is how long a post may be missing from its Page's
	// list. Facebook promises nothing; its reads follow its writes within
	// seconds, and absence needs two looks past it.
	DefaultListingLag = 20 * time.Second

	// callTimeout bounds POST /{page}/feed, which usually takes a second or
	// two.
	callTimeout = 30 * time.Second

	// maxImages is how many photos a post shows (the HTTP contract).
	maxImages = 10
	// maxPhotoBytes bounds a photo. The reference says 10 MB by now; older pages
	// and the words of its refusals say 4 MB, which holds either way.
	maxPhotoBytes = 4_000_000

	// photoLasts is how long a Page keeps a photo that is not published (Pages
	// API, "Photos").
	photoLasts = 24 * time.Hour
)

// Config says how to reach Facebook.
type Config struct {
	// APIURL, WebURL and Version default to DefaultAPIURL, DefaultWebURL and
	// DefaultVersion.
	APIURL, WebURL, Version string
	// ListingLag defaults to DefaultListingLag.
	ListingLag time.Duration
	// Clock tells when a limit that was met ends. Defaults to the real one.
	Clock clock.Clock
}

// Platform is Facebook.
type Platform struct {
	graph      meta.Graph
	webURL     string
	listingLag time.Duration
}

var (
	_ platforms.Publisher = (*Platform)(nil)
	_ platforms.Preparer  = (*Platform)(nil)
)

// New makes the platform.
func New(c Config, transport *transport.Client) *Platform {
	return &Platform{
		webURL: client.Address(c.WebURL, DefaultWebURL), listingLag: cmp.Or(max(c.ListingLag, 0), DefaultListingLag),
		graph: meta.Graph{
			Client:  client.Client{Platform: "facebook", Name: "Facebook", BaseURL: client.Address(c.APIURL, DefaultAPIURL), Transport: transport},
			Version: cmp.Or(c.Version, DefaultVersion), Clock: cmp.Or[clock.Clock](c.Clock, clock.RealClock{}), Kinds: kinds,
		},
	}
}

// Capabilities declares Facebook's rules for Pages. There is no limit of a message's
// length, as the HTTP contract has it: Facebook documents none, and what it
// refuses fails with its own words. A Page's token does not end, so
// that there is nothing to renew ahead of time.
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories:           []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage},
		Delivers:             []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage},
		MaxImages:            maxImages,
		Images:               platforms.ImageLimits{Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG}, MaxBytes: maxPhotoBytes},
		CaptionProblem:       captionProblem,
		PreparedLasts:        photoLasts,
		CallTimeout:          callTimeout,
		ListingLag:           p.listingLag,
		ListingAuthoritative: true,
	}
}

// captionProblem names what Facebook refuses besides length.
func captionProblem(text string) string {
	if text != "" && strings.TrimSpace(text) == "" {
		return "consists of blanks only, which Facebook refuses; write some text"
	}
	return ""
}

// Identify asks Facebook which Page this token is for.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	return p.graph.Identify(ctx, "/me?fields=id,name,username,picture%7Burl%7D", token)
}

// Refresh always fails: a Page's token has no end and nothing that renews it.
func (p *Platform) Refresh(context.Context, platforms.Token) (platforms.Token, error) {
	return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, "Facebook's Page tokens cannot be renewed").Advise("connect the Page again")
}

// kinds are the errors of Facebook that have words of their own, since they are
// about Pages. None of them changes from one call to the next.
var kinds = map[meta.Kind]platforms.Error{
	meta.KindToken: {
		Class:   platforms.ClassReconnect,
		Problem: "Facebook no longer accepts the Page's access token: access was withdrawn, or the password or the role of the person who connected it has changed",
		Remedy:  "connect the Page again",
	},
	meta.KindPermission: {
		Class:   platforms.ClassReconnect,
		Problem: "Facebook refuses Herald's access to this Page, because a permission or the task of creating content is missing",
		Remedy:  "connect the Page again and allow posting",
	},
	meta.KindPerson: {
		Class:   platforms.ClassPermanent,
		Problem: "Facebook asks the Page's owner to confirm something first",
		Remedy:  "open Facebook, do what it asks for, and then post again",
	},
	meta.KindLimit: {Class: platforms.ClassRateLimited, Problem: "Facebook limits how often this Page may be used, and the limit is reached"},
	meta.KindBlocked: {
		Class:   platforms.ClassQuota,
		Problem: "Facebook keeps this Page from posting for a while, because of what or how often it posted",
		Remedy:  "wait, or post less",
	},
	meta.KindQuota: {Class: platforms.ClassQuota, Problem: "this Page has reached Facebook's limit of posts for 24 hours", Remedy: "wait, or post less"},
	meta.KindDuplicate: {
		Class:   platforms.ClassDuplicate,
		Problem: "Facebook refused the post as a repetition of the Page's latest one",
		Remedy:  "if there is none, change the text",
	},
	meta.KindOther: {
		Class:   platforms.ClassPermanent,
		Problem: "Facebook refused the post (error {error}): it may be too long, hold an address that Facebook does not allow, or break another of its rules",
		Remedy:  "change the text",
	},
}
