// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mastodon publishes to the Mastodon servers that users choose: each Connection names its own.
//
// The one irrevocable call is POST /api/v1/statuses. It has an Idempotency-Key derived from platforms.Job.Key: within an
// hour, a server that has stored the key returns the earlier post instead of creating another one. Since a server stores
// the key after it has created the post, forgets it after that hour, and offers no way to look a post up by it, this
// does not make the platform idempotent (Capabilities.Idempotent). As on other platforms, the outcome of a lost
// response is determined from the account's posts; the key only prevents a second post if that lookup is wrong.
//
// A post with files is found by their ids, because a file belongs to at most one post. A text is compared with the
// source of each of the account's posts, because listings contain HTML.
package mastodon

import (
	"time"

	lru "k8s.io/apimachinery/pkg/util/cache"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

const (
	// DefaultListingLag is how long a post may be missing from its account's listing. A server reads listings from
	// the database that it writes posts to, or from a replica of it (docs.joinmastodon.org, "Scaling up your
	// server").
	DefaultListingLag = 10 * time.Second

	// callTimeout bounds POST /api/v1/statuses, readTimeout one read, and uploadTimeout one upload.
	callTimeout   = 30 * time.Second
	readTimeout   = 10 * time.Second
	uploadTimeout = 5 * time.Minute

	// uploadsLast is how long a server keeps a file that does not belong to a post
	// (app/lib/vacuum/media_attachments_vacuum.rb).
	uploadsLast = 24 * time.Hour
)

// Config configures access to Mastodon. APIURL replaces the address of every server, for use with the sandbox.
type Config = platforms.Config

// Platform is Mastodon.
type Platform struct {
	config platforms.Config
	api    client.Client
	// servers has the limits of recently inspected servers.
	servers *lru.LRUExpireCache
}

// New returns the platform.
func New(c Config, transport *transport.Client) *Platform {
	c.SetDefaults(DefaultListingLag)
	return &Platform{
		config: c, servers: lru.NewLRUExpireCacheWithClock(mostServers, c.Clock),
		api: client.Client{Platform: "mastodon", Name: "Mastodon", BaseURL: client.Address(c.APIURL, ""), Transport: transport},
	}
}

// Capabilities declares the rules of a server with default settings. They are replaced with the rules of an account's
// own server, if those are known.
func (p *Platform) Capabilities() platforms.Capabilities {
	all := []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}
	rules := defaults.apply(platforms.Capabilities{
		Categories:           all,
		Delivers:             all,
		OptionsLength:        optionsLength,
		CaptionUnit:          "characters (an address counts as 23)",
		Display:              platforms.Display{Links: shownLinks},
		PreparedTTL:          uploadsLast,
		CallTimeout:          callTimeout,
		ListingLag:           p.config.ListingLag,
		ListingAuthoritative: all,
		Hosts:                hosts,
	})
	rules.ForAccount = func(account *v1alpha1.ConnectionStatus) platforms.Capabilities {
		if account.Mastodon == nil {
			return rules
		}
		return limitsOf(account.Mastodon).apply(rules)
	}
	return rules
}
