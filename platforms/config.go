// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"time"

	"k8s.io/utils/clock"
)

// Config holds a platform's addresses and app credentials. Platforms with more settings embed it.
type Config struct {
	// APIURL, WebURL and AuthorizeURL are the addresses of the API, the website that shows posts and the consent page.
	// They default to the platform's DefaultAPIURL, DefaultWebURL and DefaultAuthorizeURL.
	APIURL, WebURL, AuthorizeURL string
	// ClientID and ClientSecret identify the app. They are needed to connect accounts and to renew tokens.
	ClientID string
	// ClientSecret is called for each request that needs the secret; nil means that there is no secret.
	ClientSecret func() string
	// ListingLag defaults to the platform's DefaultListingLag.
	ListingLag time.Duration
	// Clock is used for expiry times, rate limits and polling. It defaults to the real clock.
	Clock clock.Clock
}

// SetDefaults sets the listing lag and the clock if they are unset.
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
