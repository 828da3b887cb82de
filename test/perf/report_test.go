// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestComparisonIsStored(t *testing.T) {
	for name, more := range map[string]map[string]any{
		"alone":       nil,
		"with more":   {"posts_each": 3},
		"empty extra": {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReport(settings{}, "v0")
			r.compared("B1", "posts a second", comparison{Ratio: 0.9}, more)
			values, _ := r.values["B1"].(map[string]any)
			if values["ratio"] != 0.9 {
				t.Errorf("programs read the ratio %v, want 0.9; all of it: %v", values["ratio"], values)
			}
			if len(more) > 0 && values["posts_each"] == nil {
				t.Errorf("metrics of a single benchmark are missing: %v", values)
			}
		})
	}
}
