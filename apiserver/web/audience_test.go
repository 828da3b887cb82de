// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestAudienceChosen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		draft  bool
		tiktok *v1alpha1.TikTokOptions
		want   error
	}{
		"NotTikTok": {"no other platform has audiences", false, nil, nil},
		"Nobody":    {"TikTok wants a person to choose", false, &v1alpha1.TikTokOptions{}, errNoAudience},
		"Everyone":  {"one was chosen", false, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, nil},
		"Draft":     {"a draft is published later", true, &v1alpha1.TikTokOptions{}, nil},
		"Inbox":     {"it is chosen in TikTok's app", false, &v1alpha1.TikTokOptions{Draft: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &v1alpha1.PostSpec{Draft: tc.draft, Targets: []v1alpha1.PostTarget{{TikTok: tc.tiktok}}}
			if err := audienceChosen(spec); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}
