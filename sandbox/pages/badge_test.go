// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"testing"

	"github.com/herald-social/herald/sandbox/state"
)

func TestBadge(t *testing.T) {
	tests := map[string]struct {
		reason string
		post   state.Post
		want   string
	}{
		"public on TikTok":  {"everyone sees it", state.Post{Privacy: "PUBLIC_TO_EVERYONE"}, ""},
		"public on YouTube": {"everyone sees it", state.Post{Privacy: "public"}, ""},
		"no privacy":        {"most platforms have no privacy levels", state.Post{}, ""},
		"inbox":             {"its author has not posted it yet", state.Post{Draft: true, Privacy: "SELF_ONLY"}, "Not public"},
		"self only":         {"only its author sees it", state.Post{Privacy: "SELF_ONLY"}, onlyMe},
		"private":           {"the same on YouTube", state.Post{Privacy: "private"}, onlyMe},
		"followers":         {"followers see it", state.Post{Privacy: "FOLLOWER_OF_CREATOR"}, "Followers"},
		"unlisted":          {"everyone with the address sees it", state.Post{Privacy: "unlisted"}, "Unlisted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := badge(tc.post); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
