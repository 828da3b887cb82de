// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package youtube publishes videos to YouTube by its Data API v3.
//
// A video is uploaded in parts to a session, and is on the channel as soon as
// the last byte is there. So Prepare uploads all but the last 256 KiB at most,
// and Publish sends those. The session tells for certain whether there is a video. Its
// address is enough to use it, and is kept as a secret.
//
// People can watch the video once YouTube has processed it, which may also end with
// a rejection. The id of the video is the operation id by which it is asked for until
// then.
package youtube

import (
	"cmp"
	"net/url"
	"strings"
	"time"
	"unicode/utf16"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is where the Data API is served.
	DefaultAPIURL = "https://www.googleapis.com"
	// DefaultTokenURL is where Google renews tokens.
	DefaultTokenURL = "https://oauth2.googleapis.com"
	// DefaultWebURL is where people watch videos.
	DefaultWebURL = "https://www.youtube.com"
	// DefaultAuthorizeURL is where people let apps into their accounts.
	DefaultAuthorizeURL = "https://accounts.google.com"

	// DefaultListingLag is how long a video may be missing from the playlist of
	// its channel's uploads: minutes, by what is believed.
	DefaultListingLag = 5 * time.Minute

	// confirmAfter is how long after a refused part the upload's session, which says
	// itself whether it has become a video, is asked: its servers answer at once
	// ("Resumable Uploads", checking the status of an upload).
	confirmAfter = 10 * time.Second

	// maxDescription is the greatest length of a video's description in bytes
	// (Data API, resource "videos").
	maxDescription = 5000

	// maxTitle is the greatest length of a video's title (Data API, resource
	// "videos"), counted in UTF-16 code units: YouTube speaks of characters, and
	// what is short enough so is short enough either way.
	maxTitle = 100

	// publishTimeout bounds the last part of an upload, settleTimeout the question
	// that follows it, and thumbnailTimeout a thumbnail. callTimeout bounds all that
	// Publish does.
	publishTimeout   = 30 * time.Second
	settleTimeout    = 10 * time.Second
	thumbnailTimeout = 10 * time.Second
	callTimeout      = publishTimeout + settleTimeout + thumbnailTries*thumbnailTimeout

	// preparedLasts is how long a session is relied on. YouTube does not say how
	// long one lives; elsewhere at Google it is about a week. A day stays far from
	// that, and more would gain nothing: uploads begin less than an hour ahead.
	preparedLasts = 24 * time.Hour

	// readTimeout bounds the calls that only ask.
	readTimeout = 10 * time.Second

	// refreshLead is how long before its end an access token is renewed;
	// Google's live for about an hour.
	refreshLead = 5 * time.Minute
)

// Config says how to reach YouTube, and as which app.
type Config struct {
	// APIURL is where both the Data API and the renewal of tokens are served.
	// It defaults to DefaultAPIURL and DefaultTokenURL.
	APIURL string
	// WebURL and AuthorizeURL default to DefaultWebURL and DefaultAuthorizeURL.
	WebURL, AuthorizeURL string
	// ClientID and ClientSecret are the app's, to connect channels and renew tokens
	// with.
	ClientID string
	// ClientSecret is asked for each of those calls; nil for none.
	ClientSecret func() string
	// ListingLag defaults to DefaultListingLag.
	ListingLag time.Duration
	// Clock tells the time, and is what Publish waits by. Defaults to the real one.
	Clock clock.Clock
}

// Platform is YouTube.
type Platform struct {
	api        client.Client
	tokens     oauth2.Endpoint
	dialog     oauth2.Dialog
	webURL     string
	listingLag time.Duration
	clock      clock.Clock
	// missing has the videos that videos.list did not show when it was to, and since when.
	// It ends with the process: then a video counts as deleted some minutes later.
	missing *lru.Cache
}

var (
	_ platforms.Publisher = (*Platform)(nil)
	_ platforms.Preparer  = (*Platform)(nil)
)

// New makes the platform.
func New(c Config, way *transport.Client) *Platform {
	p := &Platform{
		dialog: c.dialog(),
		api: client.Client{
			Platform: "youtube", Name: "YouTube", BaseURL: client.Address(c.APIURL, DefaultAPIURL),
			Addresses: client.AddressPolicy{Hosts: hosts.Named, Configured: []string{c.APIURL}}, Transport: way,
		},
		webURL: client.Address(c.WebURL, DefaultWebURL), listingLag: cmp.Or(max(c.ListingLag, 0), DefaultListingLag),
		clock: cmp.Or[clock.Clock](c.Clock, clock.RealClock{}), missing: lru.New(mostMissing),
	}
	dead, _ := lookupError(codeDeadRefresh)
	p.tokens = oauth2.Endpoint{
		Client: client.Client{Platform: "youtube", Name: "Google", BaseURL: client.Address(c.APIURL, DefaultTokenURL), Transport: way},
		Path:   "/token", App: c.app,
		Timeout: readTimeout, Clock: p.clock, Dead: dead,
		Refused: func(resp *transport.Response, _ string) *platforms.Error {
			failure, _ := p.classifyAccount(resp)
			return failure
		},
	}
	return p
}

// app names the app, which shows its secret in the form.
func (c *Config) app() oauth2.App {
	form := url.Values{"client_id": {c.ClientID}}
	if c.ClientSecret != nil {
		form.Set("client_secret", c.ClientSecret())
	}
	return oauth2.App{Form: form}
}

// videos is the longest that YouTube takes (YouTube Help, "Upload videos longer than 15
// minutes"), and doubtfulVideos what accounts have that were not verified.
var (
	videos         = platforms.VideoLimits{MaxDuration: 12 * time.Hour}
	doubtfulVideos = platforms.VideoLimits{MaxDuration: 15 * time.Minute}
)

// Capabilities declares YouTube's rules. It takes videos only, with the caption as
// their description.
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories:     []v1alpha1.Category{v1alpha1.CategoryVideo},
		Delivers:       []v1alpha1.Category{v1alpha1.CategoryVideo},
		MaxTitle:       maxTitle,
		TitleLength:    func(title string) int { return len(utf16.Encode([]rune(title))) },
		TitleProblem:   titleProblem,
		MaxCaption:     maxDescription,
		CaptionUnit:    "bytes",
		CaptionLength:  func(text string) int { return len(text) },
		CaptionProblem: captionProblem,
		TakesThumbnail: true,
		Videos:         videos,
		DoubtfulVideos: doubtfulVideos,
		VideoDoubt:     "An account that YouTube has verified may post longer videos.",
		PreparedTTL:    preparedLasts,
		SecretUploads:  true,
		CallTimeout:    callTimeout,
		ListingLag:     p.listingLag,
		ConfirmAfter:   min(confirmAfter, p.listingLag),
		Hosts:          hosts,
		RefreshLead:    refreshLead,
	}
}

// titleProblem names what YouTube refuses in titles besides length. A title without
// a visible character is an empty one to it (videos.insert, error invalidTitle: "The
// request metadata specifies an invalid or empty video title").
func titleProblem(text string) string {
	if text != "" && strings.TrimSpace(text) == "" {
		return "consists of blanks only, which YouTube refuses; write a title"
	}
	return captionProblem(text)
}

// captionProblem names what YouTube refuses besides length.
func captionProblem(text string) string {
	if strings.ContainsAny(text, "<>") {
		return "contains < or >, which YouTube refuses in titles and descriptions; remove them"
	}
	return ""
}
