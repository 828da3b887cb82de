// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// TestLaterPlatforms checks that only version 2 has the platforms missing from the contract of version 1, and only those
// that the installation publishes to.
func TestLaterPlatforms(t *testing.T) {
	const bluesky, mastodon = v1alpha1.PlatformBluesky, v1alpha1.PlatformMastodon
	for name, tc := range map[string]struct {
		reason string
		of     *edition
		// configured are the later platforms that the installation publishes to.
		configured, want []v1alpha1.Platform
	}{
		"version 1":               {"its contract lists the platforms", &v1, []v1alpha1.Platform{bluesky, mastodon}, nil},
		"version 2":               {"its document is the installation's", &v2, []v1alpha1.Platform{bluesky, mastodon}, []v1alpha1.Platform{bluesky, mastodon}},
		"version 2 with Bluesky":  {"the installation does not publish to the other platform", &v2, []v1alpha1.Platform{bluesky}, []v1alpha1.Platform{bluesky}},
		"version 2 with Mastodon": {"the installation does not publish to the other platform", &v2, []v1alpha1.Platform{mastodon}, []v1alpha1.Platform{mastodon}},
		"version 2 with neither":  {"agents read about the installation's platforms only", &v2, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			configured := func(p v1alpha1.Platform) (platforms.Capabilities, bool) {
				found, ok := capabilities(p)
				return found, ok && (p.InVersion1() || slices.Contains(tc.configured, p))
			}
			rules := tc.of.rules(configured)
			var got []v1alpha1.Platform
			for i := range rules {
				if !rules[i].Platform.InVersion1() {
					got = append(got, rules[i].Platform)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: rules (-want +got):\n%s", tc.reason, diff)
			}
			described, err := tc.of.schemas(configured)
			must.Succeed(t, err)
			platform := asSchema(asSchema(described["listConnections"].input["properties"])["platform"])
			values, _ := platform["enum"].([]any)
			text, err := json.Marshal([]any{described["listConnections"].input, described["createPost"].input, categorySupport(rules)})
			must.Succeed(t, err)
			for _, p := range []v1alpha1.Platform{bluesky, mastodon} {
				want := slices.Contains(tc.want, p)
				if has := slices.Contains(values, any(string(p))); has != want || len(values) < 6 {
					t.Errorf("%s: list_connections takes %v", tc.reason, values)
				}
				if has := strings.Contains(strings.ToLower(string(text)), string(p)); has != want {
					t.Errorf("%s: agents read %s", tc.reason, text)
				}
				if has := strings.Contains(categorySupport(rules), string(p)); has != want {
					t.Errorf("%s: %s", tc.reason, categorySupport(rules))
				}
			}
		})
	}
}
