// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facebook publishes to Facebook Pages through the Graph API, with Page tokens. It cannot publish to personal
// profiles.
//
// The one irrevocable call is POST /{page}/feed. The graph has no idempotency key, so if the response is lost Herald
// searches the Page's published posts; see Lookup. If posts are published in two steps, the call is POST /{post}, and
// that post's state shows whether it took effect.
package facebook

import (
	"cmp"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is the address of the Graph API.
	DefaultAPIURL = "https://graph.facebook.com"
	// DefaultWebURL is the address of the website that shows posts.
	DefaultWebURL = "https://www.facebook.com"
	// DefaultAuthorizeURL is the address of the consent page.
	DefaultAuthorizeURL = "https://www.facebook.com"
	// DefaultVersion is the Graph API version that this package was written for.
	DefaultVersion = "v25.0"

	// DefaultListingLag is how long a post may be missing from its Page's listing. Facebook does not document a
	// lag; reads reflect writes within seconds, and two lookups after the lag are needed to end the search.
	DefaultListingLag = 20 * time.Second

	// callTimeout bounds POST /{page}/feed, which usually takes a second or two.
	callTimeout = 30 * time.Second

	// maxImages is the maximum number of photos in a post, from the HTTP contract.
	maxImages = 10
	// maxPhotoBytes bounds a photo. The current reference allows 10 MB; older documentation and Facebook's error
	// messages state 4 MB, which is within both limits.
	maxPhotoBytes = 4_000_000

	// photoLasts is how long Facebook keeps an unpublished photo (Pages API, "Photos").
	photoLasts = 24 * time.Hour
)

// Config configures access to Facebook.
type Config struct {
	platforms.Config

	// Version defaults to DefaultVersion.
	Version string
	// LoginConfigID is the id of the app's configuration for Facebook Login for Business, which determines the
	// permissions. It is empty for Facebook Login, which requests them as scopes.
	LoginConfigID string
	// TwoSteps creates posts unpublished and publishes them by their ids. A post's state then shows whether it is
	// published.
	TwoSteps bool
}

// Platform is Facebook.
type Platform struct {
	oauth2.Dialog

	graph      meta.Graph
	secret     func() string
	webURL     string
	listingLag time.Duration
	twoSteps   bool
}

// New returns the platform.
func New(c Config, transport *transport.Client) *Platform {
	c.SetDefaults(DefaultListingLag)
	c.Version = cmp.Or(c.Version, DefaultVersion)
	return &Platform{
		Dialog: c.dialog(), secret: c.Secret,
		webURL: client.Address(c.WebURL, DefaultWebURL), listingLag: c.ListingLag, twoSteps: c.TwoSteps,
		graph: meta.Graph{
			Client:  client.Client{Platform: "facebook", Name: "Facebook", BaseURL: client.Address(c.APIURL, DefaultAPIURL), Transport: transport},
			Version: c.Version, Clock: c.Clock, Errors: errorRows, Kinds: kinds,
		},
	}
}

// Capabilities declares Facebook's rules for Pages. As in the HTTP contract, a message has no maximum length: Facebook
// does not document one, and returns an error for text that it rejects. Page tokens do not expire, so there is no
// RefreshLead.
//
// The listing does not prove absence: "The API will return approximately 600 ranked, published posts per year" (Graph
// API reference, "Page Published Posts", Limitations; v25.0 and v26.0). A Page with two posts a day exceeds that, and
// the reference does not document which posts are omitted. A repeated text is only detected by error 506, and only if
// it directly follows the first one. Photos are identified by their ids, so a post with photos is found with certainty
// if it is listed. Facebook refuses to publish the same photos twice (subcode 1366051, "These photos were already
// posted"), but no reference documents that, and expired photos are uploaded again under new ids.
//
// With Config.TwoSteps, a post is created as a draft and published by its id, so its state shows whether it is
// published. Meta's SDKs contain these parameters, but do not document how they affect the post's time or the
// notification of followers, so the mode is opt-in (Config.TwoSteps, docs/facebook-two-steps.md).
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories:     []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage},
		Delivers:       []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage},
		MaxImages:      maxImages,
		Images:         platforms.ImageLimits{Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG}, MaxBytes: maxPhotoBytes},
		CaptionProblem: captionProblem,
		Display:        platforms.Display{Links: links, FoldAfter: foldAfter, FoldLines: foldLines},
		PreparedTTL:    photoLasts,
		CallTimeout:    callTimeout,
		ListingLag:     p.listingLag,
		Hosts:          hosts,
	}
}

// captionProblem returns the problem that Facebook has with a caption, other than its length, or "" if there is none.
func captionProblem(text string) string {
	if text != "" && strings.TrimSpace(text) == "" {
		return "consists of blanks only, which Facebook refuses; write some text"
	}
	return ""
}
