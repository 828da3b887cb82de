// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package threads publishes to Threads through its graph.
//
// A post is created in two steps. The first creates a container, which is invisible and expires after a day; it can be
// repeated. The second, POST /{user}/threads_publish, makes it visible and is the one irrevocable call. Afterwards, the
// container's state shows whether that call took effect, which a listing could not prove; see Lookup.
package threads

import (
	"cmp"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is the address of the Threads graph.
	DefaultAPIURL = "https://graph.threads.net"
	// DefaultAuthorizeURL is the address of the consent page ("Get Access Tokens", as of August 2026).
	DefaultAuthorizeURL = "https://threads.com"
	// DefaultVersion is the version of the graph; Threads has only this one.
	DefaultVersion = "v1.0"

	// DefaultListingLag is how long a container's state may lag behind its publication, and how long a post may be
	// missing from its author's listing. Threads does not document a lag; other clients recommend 30 to 60 seconds.
	DefaultListingLag = 30 * time.Second

	// callTimeout bounds threads_publish, which usually takes a second or two, including reading the permalink.
	callTimeout = 30 * time.Second

	// maxItems is the maximum number of images and videos in a post (Threads API, "Carousel posts").
	maxItems = 20
	// maxImageBytes and maxVideoBytes bound a post's files (Threads API, "Media specifications").
	maxImageBytes = 8 << 20
	maxVideoBytes = 1 << 30
	// maxAspect is the maximum ratio of an image's longer side to its shorter one. Threads scales images, so the width
	// is not limited.
	maxAspect = 10

	// containerLasts is how long a container remains valid before it is published (Publishing, container status
	// EXPIRED).
	containerLasts = 24 * time.Hour

	// refreshLead is how long before expiry an access token is renewed: after half of its 60 days. An expired token
	// cannot be renewed.
	refreshLead = 30 * 24 * time.Hour
)

// videos are Threads' documented video limits (Threads API, "Media specifications").
var videos = platforms.VideoLimits{
	MaxDuration: 5 * time.Minute, MaxWidth: 1920,
	MinAspect: 0.01, MaxAspect: 10, MinFrameRate: 23, MaxFrameRate: 60, MaxBitRate: 100_000_000,
	Codecs: []string{"h264", "hevc"}, AudioCodecs: []string{"aac"},
}

// Config configures access to Threads.
type Config struct {
	platforms.Config

	// Version defaults to DefaultVersion.
	Version string
}

// Platform is Threads.
type Platform struct {
	oauth2.Dialog

	graph      meta.Containers
	secret     func() string
	listingLag time.Duration
}

// New returns the platform.
func New(c Config, transport *transport.Client) *Platform {
	c.SetDefaults(DefaultListingLag)
	return &Platform{
		listingLag: c.ListingLag, Dialog: c.dialog(), secret: c.Secret,
		graph: meta.Containers{
			Graph: meta.Graph{
				Client:  client.Client{Platform: "threads", Name: "Threads", BaseURL: client.Address(c.APIURL, DefaultAPIURL), Transport: transport},
				Version: cmp.Or(c.Version, DefaultVersion), Clock: c.Clock, Errors: errorRows,
			},
			CreateEdge: "threads", PublishEdge: "threads_publish", CreateTimeout: meta.ReadTimeout, PublishTimeout: callTimeout,
			StatusFields: "id,status,error_message", ExplainFailure: containerFailure, Cache: meta.NewContainerCache(),
		},
	}
}

// Capabilities declares Threads' rules. The listing does not prove absence; the containers do.
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories:    []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree},
		Delivers:      []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree},
		MaxImages:     maxItems,
		MaxVideoBytes: maxVideoBytes,
		Card: platforms.CardLimits{
			MaxItems: maxItems, MaxVideos: maxItems, Mixed: true, MaxImageBytes: maxImageBytes, MaxVideoBytes: maxVideoBytes,
		},
		Images: platforms.ImageLimits{
			Types:    []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG},
			MaxBytes: maxImageBytes, MinAspect: 1.0 / maxAspect, MaxAspect: maxAspect,
		},
		Videos:         videos,
		MaxCaption:     maxLength,
		CaptionUnit:    "characters (an emoji counts its UTF-8 bytes)",
		CaptionLength:  length,
		CaptionProblem: captionProblem,
		Display:        platforms.Display{Links: shownLinks},
		PreparedTTL:    containerLasts,
		CallTimeout:    callTimeout,
		ListingLag:     p.listingLag,
		Hosts:          hosts,
		RefreshLead:    refreshLead,
		RenewsItself:   true,
	}
}
