// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"slices"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
)

// PresumedPlatform returns the platform to show for a target whose connection has never existed: the HTTP API has no
// value for an unknown platform. It is the platform of the target's options, or the one in the connection's name, or X,
// which supports every category.
func PresumedPlatform(target *v1alpha1.PostTarget) v1alpha1.Platform {
	switch {
	case target.YouTube != nil:
		return v1alpha1.PlatformYouTube
	case target.TikTok != nil:
		return v1alpha1.PlatformTikTok
	case target.Mastodon != nil:
		return v1alpha1.PlatformMastodon
	}
	for word := range strings.FieldsFuncSeq(target.ConnectionRef.Name, func(r rune) bool { return r == '-' || r == '.' }) {
		if platform := v1alpha1.Platform(word); slices.Contains(v1alpha1.Platforms(), platform) {
			return platform
		}
	}
	return v1alpha1.PlatformX
}
