// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bluesky publishes to Bluesky, through the server (PDS) that hosts the account.
//
// A post is a record in the account's repository, and the client chooses the record's key. Herald derives it from
// platforms.Job.Key. The one visible call, com.atproto.repo.putRecord, creates the record only if none exists under
// that key (swapRecord: null). Repeating it therefore publishes nothing, and a single com.atproto.repo.getRecord shows
// the outcome.
//
// An account's access token is either an OAuth token with its key (see bound), or the handle or DID and an app
// password, separated by a colon. The sessions of app passwords are kept in memory.
package bluesky

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/dpop"
)

const (
	// DefaultAPIURL is the address of Bluesky's entryway, which forwards requests to the servers of its accounts
	// (docs.bsky.app, "PDS Entryway").
	DefaultAPIURL = "https://bsky.social"
	// DefaultWebURL is the address of the website that shows posts.
	DefaultWebURL = "https://bsky.app"

	// listingLag is how long a post may be missing from its account's repository. There is no lag, because a server
	// commits a write before it responds, to the database that it reads from, but the interface requires a positive
	// value.
	listingLag = time.Second

	// callTimeout bounds putRecord together with the reads before it, readTimeout one read, and uploadTimeout one
	// upload.
	callTimeout   = 30 * time.Second
	readTimeout   = 10 * time.Second
	uploadTimeout = 5 * time.Minute

	// maxGraphemes and maxBytes bound a text (lexicon app.bsky.feed.post).
	maxGraphemes = 300
	maxBytes     = 3000
	// maxImages and maxImageBytes bound a post's images (lexicon app.bsky.embed.images), and maxVideoBytes its video
	// (lexicon app.bsky.embed.video).
	maxImages     = 4
	maxImageBytes = 2_000_000
	maxVideoBytes = 300_000_000
	// maxVideoDuration is the maximum duration of a video according to Bluesky's announcement of March 2025, when
	// the maximum size was 100 MB; the lexicon does not limit the duration.
	maxVideoDuration = 3 * time.Minute

	// uploadsLast is how long a server keeps a blob that no record refers to: at least an hour (AT Protocol, "Blobs").
	uploadsLast = time.Hour

	// refreshLead is how long before expiry an OAuth access token is renewed. Tokens are valid for an hour
	// (observed with @atproto/pds 0.5.35).
	refreshLead = 10 * time.Minute
)

// Config configures access to Bluesky. APIURL is the address of the accounts' server.
type Config struct {
	platforms.Config

	// DirectoryURL is the address of the directory of accounts. It defaults to DefaultDirectoryURL.
	DirectoryURL string
	// Pages reads the pages for link cards. If it is nil, posts have no cards.
	Pages Pages
}

// Platform is Bluesky.
type Platform struct {
	api    client.Client
	webURL string
	// directory is the address of the directory of accounts.
	directory string
	config    platforms.Config
	pages     Pages
	sessions  *sessions
	nonces    *dpop.Nonces
}

// New returns the platform.
func New(c Config, transport *transport.Client) *Platform {
	c.SetDefaults(listingLag)
	return &Platform{
		directory: client.Address(c.DirectoryURL, DefaultDirectoryURL),
		config:    c.Config, pages: c.Pages, sessions: newSessions(maxSessions), nonces: dpop.NewNonces(), webURL: client.Address(c.WebURL, DefaultWebURL),
		api: client.Client{Platform: "bluesky", Name: "Bluesky", BaseURL: client.Address(c.APIURL, DefaultAPIURL), Transport: transport},
	}
}

// Capabilities declares Bluesky's rules.
func (p *Platform) Capabilities() platforms.Capabilities {
	all := []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}
	return platforms.Capabilities{
		Categories:           all,
		Delivers:             all,
		MaxImages:            maxImages,
		MaxVideoBytes:        maxVideoBytes,
		Card:                 platforms.CardLimits{MaxItems: maxImages, MaxVideos: 1, MaxImageBytes: maxImageBytes, MaxVideoBytes: maxVideoBytes},
		Images:               platforms.ImageLimits{Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG, v1alpha1.MimeWebP}, MaxBytes: maxImageBytes},
		DoubtfulVideos:       platforms.VideoLimits{MaxDuration: maxVideoDuration},
		VideoDoubt:           "Bluesky announced this limit in 2025, and has raised the size of videos since.",
		MaxCaption:           maxGraphemes,
		CaptionUnit:          "characters",
		CaptionLength:        graphemes,
		CaptionProblem:       captionProblem,
		Display:              platforms.Display{Links: links},
		PreparedTTL:          uploadsLast,
		CallTimeout:          callTimeout,
		ListingLag:           p.config.ListingLag,
		ListingAuthoritative: all,
		Idempotent:           true,
		Hosts:                hosts,
		RefreshLead:          refreshLead,
	}
}

// captionProblem returns the problem that Bluesky has with a caption, other than its length in characters, or "" if
// there is none.
func captionProblem(text string) string {
	if len(text) > maxBytes {
		return "has more than 3000 bytes in UTF-8, which Bluesky refuses; shorten it"
	}
	return ""
}
