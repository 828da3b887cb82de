// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Platforms has one section per platform, `{}` for a platform without settings. A platform without a section is
// unavailable.
type Platforms struct {
	Bluesky   *Platform `json:"bluesky,omitempty"`
	Facebook  *Platform `json:"facebook,omitempty"`
	Instagram *Platform `json:"instagram,omitempty"`
	Mastodon  *Platform `json:"mastodon,omitempty"`
	Threads   *Platform `json:"threads,omitempty"`
	TikTok    *Platform `json:"tiktok,omitempty"`
	X         *Platform `json:"x,omitempty"`
	YouTube   *Platform `json:"youtube,omitempty"`
	// Sandbox replaces the configured platforms with the sandbox, for trials and tests.
	Sandbox Sandbox `json:"sandbox,omitzero"`
}

// Sections returns a pointer to the field of each platform's section, by the platform's name.
func (p *Platforms) Sections() map[string]**Platform {
	return map[string]**Platform{
		"bluesky": &p.Bluesky, "facebook": &p.Facebook, "instagram": &p.Instagram, "mastodon": &p.Mastodon, "threads": &p.Threads,
		"tiktok": &p.TikTok, "x": &p.X, "youtube": &p.YouTube,
	}
}

// Sandbox locates the sandbox, which simulates all platforms.
type Sandbox struct {
	// URL is where Herald reaches the sandbox, such as http://127.0.0.1:9100. If it is empty, Herald calls
	// the real platforms. The URL of each platform is derived from it.
	URL string `json:"url,omitempty"`
	// PublicURL is the URL of the same sandbox for browsers, which open consent pages and posts there; empty if it
	// is the same.
	PublicURL string `json:"publicURL,omitempty"`
}

// Platform configures access to one platform and Herald's app there. All sections have the same fields, and all fields
// but the app's have a default. A platform ignores the fields that it does not use.
type Platform struct {
	// Login is the way to connect Instagram accounts: "instagram" (default) or "facebook". It also applies to connected
	// accounts whose Secret lists no scopes.
	Login string `json:"login,omitempty"`
	// LoginConfigID is the configuration of the app's Facebook Login for Business that requests the permissions
	// (Facebook, and Instagram with the login "facebook"); empty for an app with plain Facebook Login.
	LoginConfigID string `json:"loginConfigID,omitempty"`
	// TwoSteps creates posts to Facebook Pages unpublished first and then publishes them by id, so the state of each post
	// shows whether it is online. It is false by default, because it has not been confirmed with a real Page.
	TwoSteps bool `json:"twoSteps,omitempty"`
	// Version is the version of the Graph API: v25.0 by default for Facebook and Instagram, v1.0 for Threads.
	Version string `json:"version,omitempty"`
	// ClientID identifies the app; TikTok calls it the client key. It is required to connect accounts, and on Bluesky, TikTok, X
	// and YouTube to renew tokens. Bluesky's is the URL of a document that the site serves:
	// siteURL/oauth/bluesky/client-metadata.json.
	ClientID string `json:"clientID,omitempty"`
	// ClientSecretFile is the path of a file with the app's secret; empty for a public client of X. Bluesky's is a private key
	// of the curve P-256 in PEM (PKCS #8); without it, accounts are connected by app passwords only. The file is reloaded when
	// it changes.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// Server is the URL of the server for Bluesky accounts: https://bsky.social by default, which forwards requests to
	// the servers of all accounts that Bluesky hosts. It is also used with the sandbox.
	Server string `json:"server,omitempty"`
	// Directory is the URL of Bluesky's account directory, where Herald looks up the server of an account connected by
	// OAuth: https://plc.directory by default. It is also used with the sandbox.
	Directory string `json:"directory,omitempty"`
	// ListingLag is how long a published post may be missing from the platform's listing.
	ListingLag metav1.Duration `json:"listingLag,omitzero"`
}
