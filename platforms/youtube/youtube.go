// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package youtube publishes videos to YouTube through its Data API v3.
//
// A video is uploaded in parts to a session, and is on the channel once the last byte has arrived. Prepare therefore
// uploads all but at most the last 256 KiB, and Publish sends the rest. The session's state proves whether there is a
// video. The session's URL grants access by itself and is stored as a secret.
//
// The video is public once YouTube has processed it; YouTube may also reject it. Until then, lookups use the video's id
// as the operation id.
package youtube

import (
	"strings"
	"time"
	"unicode/utf16"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is the address of the Data API.
	DefaultAPIURL = "https://www.googleapis.com"
	// DefaultTokenURL is the address of Google's token endpoint.
	DefaultTokenURL = "https://oauth2.googleapis.com"
	// DefaultWebURL is the address of the website with the videos.
	DefaultWebURL = "https://www.youtube.com"
	// DefaultAuthorizeURL is the address of the consent page.
	DefaultAuthorizeURL = "https://accounts.google.com"

	// DefaultListingLag is how long a video may be missing from the playlist of its channel's uploads. YouTube does
	// not document a lag; it is assumed to be minutes.
	DefaultListingLag = 5 * time.Minute

	// confirmAfter is how long after a refused part the upload session is queried. The session's state shows,
	// without a lag, whether the part completed a video ("Resumable Uploads", checking the status of an upload).
	confirmAfter = 10 * time.Second

	// maxDescription is the maximum length of a video's description, in bytes (Data API, resource "videos").
	maxDescription = 5000

	// maxTitle is the maximum length of a video's title (Data API, resource "videos"), counted in UTF-16 code
	// units. YouTube does not define its unit, "characters"; a title within the limit in UTF-16 code units is also
	// within it in code points.
	maxTitle = 100

	// publishTimeout bounds sending the last part of an upload, settleTimeout the status call after it, and
	// thumbnailTimeout setting a thumbnail. callTimeout bounds Publish as a whole.
	publishTimeout   = 30 * time.Second
	settleTimeout    = 10 * time.Second
	thumbnailTimeout = 10 * time.Second
	callTimeout      = publishTimeout + settleTimeout + thumbnailTries*thumbnailTimeout

	// preparedLasts is how long a session is assumed to be valid. YouTube does not document it; other Google
	// services keep sessions for about a week. A day is well within that, and it is long enough, because uploads
	// start less than an hour in advance.
	preparedLasts = 24 * time.Hour

	// readTimeout bounds read-only calls.
	readTimeout = 10 * time.Second

	// refreshLead is how long before expiry an access token is renewed. Google's tokens are valid for about an hour.
	refreshLead = 5 * time.Minute
)

// Config configures access to YouTube and its app. APIURL is the address of both the Data API and the token endpoint,
// and also replaces DefaultTokenURL.
type Config = platforms.Config

// Platform is YouTube.
type Platform struct {
	oauth2.Base

	// missing contains the videos that videos.list should return but does not, with the time of the first such
	// response. It is kept in memory only: after a restart, a video counts as deleted a few minutes later.
	missing *lru.Cache
}

var site = oauth2.Site{
	Platform: "youtube", Name: "YouTube", APIURL: DefaultAPIURL, WebURL: DefaultWebURL, ListingLag: DefaultListingLag, Hosts: hosts.Named,
}

// New returns the platform.
func New(c Config, way *transport.Client) *Platform {
	p := &Platform{Base: oauth2.NewBase(&c, &site, way), missing: lru.New(maxMissing)}
	dead, _ := lookupError(codeDeadRefresh)
	p.Connector = oauth2.Connector{
		Accounts: p, Dialog: dialog(&c), Required: requiredScopes,
		Tokens: oauth2.Endpoint{
			Client: client.Client{Platform: "youtube", Name: "Google", BaseURL: client.Address(c.APIURL, DefaultTokenURL), Transport: way},
			Path:   "/token", App: oauth2.FormApp(&c, "client_id"),
			Timeout: readTimeout, Clock: p.Clock, Dead: dead,
			Refused: func(resp *transport.Response, _ string) *platforms.Error {
				failure, _ := p.classifyAccount(resp)
				return failure
			},
		},
	}
	return p
}

// videos contains YouTube's maximum duration (YouTube Help, "Upload videos longer than 15 minutes"), and doubtfulVideos
// the maximum duration for unverified accounts.
var (
	videos         = platforms.VideoLimits{MaxDuration: 12 * time.Hour}
	doubtfulVideos = platforms.VideoLimits{MaxDuration: 15 * time.Minute}
)

// Capabilities declares YouTube's rules. Only videos are supported, with the caption as their description.
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
		Display:        platforms.Display{Links: links, FoldAfter: foldAfter, FoldLines: foldLines},
		TakesThumbnail: true,
		Videos:         videos,
		DoubtfulVideos: doubtfulVideos,
		VideoDoubt:     "An account that YouTube has verified may post longer videos.",
		PreparedTTL:    preparedLasts,
		SecretUploads:  true,
		CallTimeout:    callTimeout,
		ListingLag:     p.ListingLag,
		ConfirmAfter:   min(confirmAfter, p.ListingLag),
		Hosts:          hosts,
		RefreshLead:    refreshLead,
	}
}

// titleProblem returns the problem that YouTube has with a title, other than its length, or "" if there is none. A
// title without a visible character counts as empty (videos.insert, error invalidTitle: "The request metadata specifies
// an invalid or empty video title").
func titleProblem(text string) string {
	if text != "" && strings.TrimSpace(text) == "" {
		return "consists of blanks only, which YouTube refuses; write a title"
	}
	return captionProblem(text)
}

// captionProblem returns the problem that YouTube has with a caption, other than its length, or "" if there is none.
func captionProblem(text string) string {
	if strings.ContainsAny(text, "<>") {
		return "contains < or >, which YouTube refuses in titles and descriptions; remove them"
	}
	return ""
}
