// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package x publishes to X through its API v2, with OAuth 2.0 user tokens.
//
// The one irrevocable call is POST /2/tweets. X has no idempotency key, so if the response is lost Herald searches the
// account's timeline; see Lookup.
package x

import (
	"net/url"
	"regexp"
	"strings"
	"time"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/oauth2"
	"github.com/herald-social/herald/platforms/x/tweettext"
)

const (
	// DefaultAPIURL is the address of X's API.
	DefaultAPIURL = "https://api.x.com"
	// DefaultWebURL is the address of the website that shows posts.
	DefaultWebURL = "https://x.com"
	// DefaultAuthorizeURL is the address of the consent page.
	DefaultAuthorizeURL = "https://x.com"

	// DefaultListingLag is how long a post may be missing from its author's timeline. X does not document a lag;
	// measurements by others suggest 10 to 30 seconds. Proving absence takes two lookups after the lag.
	DefaultListingLag = 15 * time.Second

	// callTimeout bounds POST /2/tweets, which usually takes well under a second.
	callTimeout = 20 * time.Second

	// maxImages is the maximum number of images in a post or in a card of a tree.
	maxImages = 4
	// maxImageBytes and maxVideoBytes bound a post's files (X's guide to media, "Best practices": 5 MB, and 512 MB for
	// an ordinary account).
	maxImageBytes = 5 << 20
	maxVideoBytes = 512 << 20

	// readTimeout bounds read-only calls.
	readTimeout = 10 * time.Second

	// maxLost is the capacity of the cache of lost uploads.
	maxLost = 1000

	// refreshLead is how long before expiry an access token is renewed. X's tokens are valid for two hours.
	refreshLead = 15 * time.Minute
)

// videos are the limits in X's guide to media ("Best practices"), for accounts with the highest limits. The guide
// allows 1280 × 1024 pixels; 1080p is known to work, and X itself recommends it elsewhere.
var videos = platforms.VideoLimits{
	MinDuration: 500 * time.Millisecond, MaxDuration: 125 * time.Minute,
	MinSide: 32, MaxSide: 1920, MinAspect: 1.0 / 3, MaxAspect: 3, MaxFrameRate: 60,
	Codecs: []string{"h264", "hevc"},
}

// doubtfulVideos are the limits that apply to every account. Since a change in September 2026, ordinary accounts are
// supposed to be allowed 20 minutes instead of 140 seconds. The guide lists only H.264 and AAC, but X has accepted HEVC
// videos from phones.
var doubtfulVideos = platforms.VideoLimits{MaxDuration: 140 * time.Second, Codecs: []string{"h264"}, AudioCodecs: []string{"aac"}}

// Config configures access to X and its app. An app without a secret is a public client.
type Config = platforms.Config

// Platform is X.
type Platform struct {
	oauth2.Base

	// lost contains the checkpoints whose files X reported as unknown. It is kept in memory only: after a restart,
	// the next call detects them again.
	lost *lru.Cache
}

var site = oauth2.Site{
	Platform: "x", Name: "X", APIURL: DefaultAPIURL, WebURL: DefaultWebURL, ListingLag: DefaultListingLag,
}

// New returns the platform.
func New(c Config, way *transport.Client) *Platform {
	p := &Platform{Base: oauth2.NewBase(&c, &site, way), lost: lru.New(maxLost)}
	p.Connector = oauth2.Connector{
		Accounts: p, Dialog: dialog(&c), Required: requiredScopes,
		Tokens: oauth2.Endpoint{
			Client: p.API, Path: "/2/oauth2/token", App: func() oauth2.App { return app(&c) }, Timeout: readTimeout, Clock: p.Clock,
			NoRefresh: noRefresh, Dead: refreshDead, IsDead: isDead,
			Refused: func(resp *transport.Response, _ string) *platforms.Error {
				failure, _ := p.classify(resp)
				return failure
			},
		},
	}
	return p
}

// app returns the app's credentials: in the header if it has a secret, or in the form as a public client.
func app(c *Config) oauth2.App {
	if secret := c.Secret(); secret != "" {
		return oauth2.App{ID: c.ClientID, Secret: secret}
	}
	return oauth2.App{Form: url.Values{"client_id": {c.ClientID}}}
}

// Capabilities declares X's rules for an account without a subscription. They allow 280 weighted characters even if the
// account has a subscription, because it may end before a scheduled post is due.
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories:           []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree},
		Delivers:             []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree},
		MaxImages:            maxImages,
		MaxVideoBytes:        maxVideoBytes,
		Card:                 platforms.CardLimits{MaxItems: maxImages, MaxVideos: 1, MaxImageBytes: maxImageBytes, MaxVideoBytes: maxVideoBytes},
		Images:               platforms.ImageLimits{Types: imageTypes(), MaxBytes: maxImageBytes},
		Videos:               videos,
		DoubtfulVideos:       doubtfulVideos,
		VideoDoubt:           "X's documents and reports of its users differ in this, and so do accounts with and without Premium.",
		MaxCaption:           tweettext.MaxWeightedLength,
		CaptionUnit:          "weighted characters",
		CaptionLength:        tweettext.Length,
		CaptionProblem:       captionProblem,
		CaptionWarning:       captionWarning,
		Display:              platforms.Display{Links: links},
		PreparedTTL:          mediaLasts,
		CallTimeout:          callTimeout,
		ListingLag:           p.ListingLag,
		Hosts:                hosts,
		ListingAuthoritative: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree},
		RefreshLead:          refreshLead,
	}
}

// imageTypes returns the image formats that X accepts (guide to media, "Best practices").
func imageTypes() []v1alpha1.MimeType {
	return []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG, v1alpha1.MimeWebP}
}

// captionProblem returns the problem that X has with a caption, other than its length, or "" if there is none.
func captionProblem(text string) string {
	switch {
	case tweettext.HasInvalidCharacter(text):
		return "contains a character that X refuses (U+FEFF, U+FFFE or U+FFFF); remove it"
	case text != "" && strings.TrimSpace(text) == "":
		return "consists of blanks only, which X refuses; write some text"
	default:
		return ""
	}
}

// cashtag matches a cashtag such as $ABC: one to six letters, and up to two more after a dot or an underscore
// (twitter-text, regexp/cashtag).
var cashtag = regexp.MustCompile(`(?i)(?:^|\s)(\$[a-z]{1,6}(?:[._][a-z]{1,2})?)\b`)

// captionWarning returns the problem that X has with a caption from an app on a self-serve plan: more than one cashtag
// ("Manage Posts"). Enterprise apps may post several, and Herald cannot determine its app's plan.
func captionWarning(text string) string {
	if len(cashtag.FindAllString(text, 2)) < 2 {
		return ""
	}
	return "has several cashtags ($ABC); X refuses more than one from an app without an Enterprise plan"
}
