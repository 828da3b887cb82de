// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realplatforms provides every platform's production code, for tests that need the real rules and do not call
// platforms.
package realplatforms

import (
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/mastodon"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/platforms/youtube"
)

// All returns every platform.
func All() platforms.Registry {
	client := transport.New(transport.Options{})
	return platforms.Registry{
		v1alpha1.PlatformX:         x.New(x.Config{}, client),
		v1alpha1.PlatformThreads:   threads.New(threads.Config{}, client),
		v1alpha1.PlatformInstagram: instagram.New(instagram.Config{}, client),
		v1alpha1.PlatformFacebook:  facebook.New(facebook.Config{}, client),
		v1alpha1.PlatformTikTok:    tiktok.New(tiktok.Config{}, client),
		v1alpha1.PlatformYouTube:   youtube.New(youtube.Config{}, client),
		v1alpha1.PlatformBluesky:   bluesky.New(bluesky.Config{}, client),
		v1alpha1.PlatformMastodon:  mastodon.New(mastodon.Config{}, client),
	}
}
