// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// TestLaterPlatforms checks that only version 2 has the platforms that the contract of version 1 does not have.
func TestLaterPlatforms(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		of     *edition
		has    bool
	}{
		"version 1": {"its contract lists the platforms", &v1, false},
		"version 2": {"its document is the installation's", &v2, true},
	} {
		t.Run(name, func(t *testing.T) {
			rules := tc.of.rules(capabilities)
			if has := slices.ContainsFunc(rules, func(r platformRules) bool { return r.Platform == v1alpha1.PlatformBluesky }); has != tc.has {
				t.Errorf("%s: the rules are %+v", tc.reason, rules)
			}
			described, err := tc.of.schemas(capabilities)
			must.Succeed(t, err)
			platform := asSchema(asSchema(described["listConnections"].input["properties"])["platform"])
			values, _ := platform["enum"].([]any)
			if has := slices.Contains(values, any("bluesky")); has != tc.has || len(values) < 6 {
				t.Errorf("%s: list_connections takes %v", tc.reason, values)
			}
			if has := strings.Contains(categorySupport(rules), "bluesky"); has != tc.has {
				t.Errorf("%s: %s", tc.reason, categorySupport(rules))
			}
		})
	}
}
