// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facebook publishes to Facebook Pages by the Graph API, with Page
// tokens. Personal profiles cannot be published to.
//
// The one irrevocable call is POST /{page}/feed. The graph offers no key that
// would make it repeatable, so a call whose answer was lost is looked for among
// the Page's published posts; see Lookup. In two steps it is POST /{post}, and the post
// itself tells whether the call took effect.
package facebook

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is where the Graph API is served.
	DefaultAPIURL = "https://graph.facebook.com"
	// DefaultWebURL is where people read posts.
	DefaultWebURL = "https://www.facebook.com"
	// DefaultAuthorizeURL is where people let apps use their Pages.
	DefaultAuthorizeURL = "https://www.facebook.com"
	// DefaultVersion is the version of the Graph API that this package was
	// written against.
	DefaultVersion = "v25.0"

	// DefaultListingLag is how long a post may be missing from its Page's
	// list. Facebook promises nothing; its reads follow its writes within
	// seconds, and two looks past it end the search.
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
	// APIURL, WebURL, AuthorizeURL and Version default to DefaultAPIURL,
	// DefaultWebURL, DefaultAuthorizeURL and DefaultVersion.
	APIURL, WebURL, AuthorizeURL, Version string
	// ClientID and ClientSecret are the app's, to connect Pages with.
	ClientID string
	// ClientSecret is asked for each of those calls; nil for none.
	ClientSecret func() string
	// LoginConfigID names the app's configuration of Facebook Login for Business, which has
	// the permissions to ask for; empty for Facebook Login, which is told them.
	LoginConfigID string
	// ListingLag defaults to DefaultListingLag.
	ListingLag time.Duration
	// TwoSteps creates posts unpublished and publishes them by their ids, so that each
	// tells of itself whether it is online.
	TwoSteps bool
	// Clock tells when a limit that was met ends. Defaults to the real one.
	Clock clock.Clock
}

// Platform is Facebook.
type Platform struct {
	graph      meta.Graph
	dialog     oauth2.Dialog
	secret     func() string
	webURL     string
	listingLag time.Duration
	twoSteps   bool
}

var (
	_ platforms.Publisher = (*Platform)(nil)
	_ platforms.Preparer  = (*Platform)(nil)
)

// New makes the platform.
func New(c Config, transport *transport.Client) *Platform {
	version := cmp.Or(c.Version, DefaultVersion)
	return &Platform{
		dialog: c.dialog(version), secret: oauth2.Secret(c.ClientSecret),
		webURL: client.Address(c.WebURL, DefaultWebURL), listingLag: cmp.Or(max(c.ListingLag, 0), DefaultListingLag),
		twoSteps: c.TwoSteps,
		graph: meta.Graph{
			Client:  client.Client{Platform: "facebook", Name: "Facebook", BaseURL: client.Address(c.APIURL, DefaultAPIURL), Transport: transport},
			Version: version, Clock: cmp.Or[clock.Clock](c.Clock, clock.RealClock{}), Errors: errorRows, Kinds: kinds,
		},
	}
}

// Capabilities declares Facebook's rules for Pages. There is no limit of a message's
// length, as the HTTP contract has it: Facebook documents none, and what it
// refuses fails with its own words. A Page's token does not end, so
// that there is nothing to renew ahead of time.
//
// Absence from the Page's posts proves nothing: "The API will return approximately
// 600 ranked, published posts per year" (Graph API reference, "Page Published
// Posts", Limitations; v25.0 and v26.0), so that a Page with two posts a day is
// beyond what is listed, and which are missing is not said. What protects a text
// that is sent again is error 506 alone, and that against the direct repetition
// only. Photos are known by their ids, so that their post is found with certainty
// if it is listed. Facebook refuses to show the same photos twice (subcode 1366051,
// "These photos were already posted"), but no reference says so, and photos that it
// no longer keeps are uploaded again under new ids.
//
// In two steps, the post tells of itself whether it is online: it is created as a draft,
// and published by its id. Meta lists those parameters in its SDKs without saying what
// they do to the post's time or to what its followers are told, so that an installation
// asks for it (Config.TwoSteps, docs/facebook-two-steps.md).
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories:     []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage},
		Delivers:       []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage},
		MaxImages:      maxImages,
		Images:         platforms.ImageLimits{Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG}, MaxBytes: maxPhotoBytes},
		CaptionProblem: captionProblem,
		PreparedTTL:    photoLasts,
		CallTimeout:    callTimeout,
		ListingLag:     p.listingLag,
		Hosts:          hosts,
	}
}

// captionProblem names what Facebook refuses besides length.
func captionProblem(text string) string {
	if text != "" && strings.TrimSpace(text) == "" {
		return "consists of blanks only, which Facebook refuses; write some text"
	}
	return ""
}
