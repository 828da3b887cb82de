// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tiktok knows accounts of TikTok by its API v2.
package tiktok

import (
	"strings"
	"time"
	"unicode/utf16"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

const (
	// DefaultAPIURL is where TikTok's API is served.
	DefaultAPIURL = "https://open.tiktokapis.com"

	// maxCaption is the greatest length of a video's title in UTF-16 code
	// units (Content Posting API, "Direct Post").
	maxCaption = 2200

	// maxImages is how many photos a post shows (Content Posting API, "Photo
	// post").
	maxImages = 35

	// readTimeout bounds the calls that only ask.
	readTimeout = 10 * time.Second

	// refreshLead is how long before its end an access token is renewed;
	// TikTok's live for two hours since November 2026.
	refreshLead = 15 * time.Minute
)

// Config says how to reach TikTok, and as which app.
type Config struct {
	// APIURL defaults to DefaultAPIURL.
	APIURL string
	// ClientKey and ClientSecret are the app's, to renew tokens with.
	ClientKey, ClientSecret string
	// Clock tells when a token that was just handed out ends. Defaults to the
	// real one.
	Clock clock.PassiveClock
}

// Platform is TikTok.
type Platform struct {
	config Config
	client *transport.Client
}

var _ platforms.Platform = (*Platform)(nil)

// New makes the platform.
func New(c Config, client *transport.Client) *Platform {
	if c.APIURL == "" {
		c.APIURL = DefaultAPIURL
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	c.APIURL = strings.TrimRight(c.APIURL, "/")
	return &Platform{config: c, client: client}
}

// Limits declares TikTok's rules. It takes no posts of text alone.
func (p *Platform) Limits() platforms.Limits {
	return platforms.Limits{
		Categories:    []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
		MaxImages:     maxImages,
		MaxCaption:    maxCaption,
		CaptionUnit:   "UTF-16 code units",
		CaptionLength: func(text string) int { return len(utf16.Encode([]rune(text))) },
		RefreshLead:   refreshLead,
	}
}
