// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// TestLaterPlatforms checks that the document of version 2 includes the platforms missing from version 1 only if the
// installation publishes to them.
func TestLaterPlatforms(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		publishes  []v1alpha1.Platform
		enum, text string
	}{
		"none": {"an installation without them does not mention them", nil, "x facebook", "`x`, `threads`, `facebook` |"},
		"one of version 1": {
			"the document always has these, like that of version 1", []v1alpha1.Platform{v1alpha1.PlatformX}, "x facebook", "`x`, `threads`, `facebook` |",
		},
		"one": {
			"clients may send the value, and see its categories",
			[]v1alpha1.Platform{v1alpha1.PlatformBluesky},
			"x facebook bluesky", "`bluesky`, `x`, `threads`, `facebook` |",
		},
		"both": {
			"one platform does not hide the other",
			[]v1alpha1.Platform{v1alpha1.PlatformBluesky, v1alpha1.PlatformMastodon},
			"x facebook mastodon bluesky", "`mastodon`, `bluesky`, `x`, `threads`, `facebook` |",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := YAMLV2With(func(p v1alpha1.Platform) (platforms.Capabilities, bool) {
				return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryText}}, slices.Contains(tc.publishes, p)
			})
			parsed, err := openapi3.NewLoader().LoadFromData(document)
			if err != nil {
				t.Fatal(err)
			}
			var enum []string
			for _, value := range schemaOf(t, parsed, "Platform").Enum {
				enum = append(enum, value.(string))
			}
			if got := strings.Join(enum, " "); !strings.HasSuffix(got, tc.enum) {
				t.Errorf("%s: the platforms are %s", tc.reason, got)
			}
			if !bytes.Contains(document, []byte("| `text` | "+tc.text)) {
				t.Errorf("%s: the table of categories does not have %s", tc.reason, tc.text)
			}
			if len(tc.enum) == len("x facebook") && !bytes.Equal(document, YAMLV2()) {
				t.Errorf("%s: the document differs", tc.reason)
			}
		})
	}
}
