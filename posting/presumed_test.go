// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestPresumedPlatform(t *testing.T) {
	t.Parallel()
	named := func(name string) v1alpha1.PostTarget {
		return v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}}
	}
	with := func(set func(*v1alpha1.PostTarget)) v1alpha1.PostTarget {
		target := named("acme-x")
		set(&target)
		return target
	}
	for name, tc := range map[string]struct {
		reason string
		target v1alpha1.PostTarget
		want   v1alpha1.Platform
	}{
		"options of YouTube":  {"other platforms do not have them", with(func(t *v1alpha1.PostTarget) { t.YouTube = &v1alpha1.YouTubeOptions{Title: "a film"} }), v1alpha1.PlatformYouTube},
		"options of TikTok":   {"they determine the platform, whatever the name", with(func(t *v1alpha1.PostTarget) { t.TikTok = &v1alpha1.TikTokOptions{} }), v1alpha1.PlatformTikTok},
		"options of Mastodon": {"they determine the platform, whatever the name", with(func(t *v1alpha1.PostTarget) { t.Mastodon = &v1alpha1.MastodonOptions{} }), v1alpha1.PlatformMastodon},
		"a platform":          {"such names are common", named("acme-threads.main"), v1alpha1.PlatformThreads},
		"a later platform":    {"version 1 of the API does not have it", named("bluesky-x"), v1alpha1.PlatformBluesky},
		"a similar word":      {"the platform must be a whole word", named("instagrammers"), v1alpha1.PlatformX},
		"any other name":      {"X accepts every category", named("acme"), v1alpha1.PlatformX},
	} {
		if got := PresumedPlatform(&tc.target); got != tc.want {
			t.Errorf("%s: %s: got %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}
