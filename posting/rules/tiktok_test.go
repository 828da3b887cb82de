// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestTikTokPrivacy(t *testing.T) {
	t.Parallel()
	private := []string{"SELF_ONLY", "FOLLOWER_OF_CREATOR"}
	for _, tt := range []struct {
		name, reason string
		platform     v1alpha1.Platform
		can          []string
		options      *v1alpha1.TikTokOptions
		want         string
	}{
		{"public account", "what is left out means public", v1alpha1.PlatformTikTok, []string{"PUBLIC_TO_EVERYONE", "SELF_ONLY"}, nil, ""},
		{"left out", "a private account cannot choose what is meant", v1alpha1.PlatformTikTok, private, nil, "the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY"},
		{"asked for", "a private account cannot choose it", v1alpha1.PlatformTikTok, private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, "the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY"},
		{"chosen well", "a private account can choose this one", v1alpha1.PlatformTikTok, private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}, ""},
		{"nothing to choose", "there may be no way out", v1alpha1.PlatformTikTok, private[1:], nil, "the account cannot choose PUBLIC_TO_EVERYONE, nor any other level that a post can ask for"},
		{"inbox draft", "its owner chooses in the app", v1alpha1.PlatformTikTok, private, &v1alpha1.TikTokOptions{Draft: true}, ""},
		{"not told", "TikTok itself decides", v1alpha1.PlatformTikTok, nil, nil, ""},
		{"another platform", "the option has no effect there", v1alpha1.PlatformX, private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			connection := &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: tt.platform}}
			connection.Status.TikTok = &v1alpha1.TikTokAccount{PrivacyLevelOptions: tt.can}
			post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{TikTok: tt.options}}}}
			errs := TikTokPrivacy(post, Env{Connection: func(string) *v1alpha1.Connection { return connection }})
			got := ""
			if len(errs) > 0 {
				got = errs[0].Detail
			}
			if got != tt.want || len(errs) > 1 {
				t.Errorf("%s: got %v, want %q", tt.reason, errs, tt.want)
			}
		})
	}
}
