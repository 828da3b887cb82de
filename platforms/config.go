// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"time"

	"k8s.io/utils/clock"
)

// Config configures the access to a platform, and its app. A platform with more settings embeds it.
type Config struct {
	// APIURL, WebURL and AuthorizeURL are the addresses of the API, of the website with the posts and of the consent
	// page. They default to the platform's DefaultAPIURL, DefaultWebURL and DefaultAuthorizeURL.
	APIURL, WebURL, AuthorizeURL string
	// ClientID and ClientSecret belong to the app and are needed for connecting accounts and renewing tokens.
	ClientID string
	// ClientSecret is called for each of these requests; nil for none.
	ClientSecret func() string
	// ListingLag defaults to the platform's DefaultListingLag.
	ListingLag time.Duration
	// Clock is the clock for expiry times, rate limits and polling. Defaults to the real one.
	Clock clock.Clock
}

// SetDefaults sets the listing lag and the clock if they are not configured.
func (c *Config) SetDefaults(lag time.Duration) {
	c.ListingLag = cmp.Or(max(c.ListingLag, 0), lag)
	c.Clock = cmp.Or[clock.Clock](c.Clock, clock.RealClock{})
}

// Secret returns the app's secret, or "" if none is configured.
func (c *Config) Secret() string {
	if c.ClientSecret == nil {
		return ""
	}
	return c.ClientSecret()
}
