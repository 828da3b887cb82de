// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestPlatforms checks that Platforms returns every value that the schema accepts, and that each has a name.
func TestPlatforms(t *testing.T) {
	source, err := os.ReadFile("shared_types.go")
	if err != nil {
		t.Fatal(err)
	}
	marker := regexp.MustCompile(`\+kubebuilder:validation:Enum=(\S+)\ntype Platform `).FindSubmatch(source)
	if marker == nil {
		t.Fatal("the type Platform has no list of values")
	}
	var listed []string
	later := false
	for _, p := range v1alpha1.Platforms() {
		listed = append(listed, string(p))
		if p.Title() == string(p) {
			t.Errorf("%s has no title", p)
		}
		if p.InVersion1() && later {
			t.Errorf("%s comes after platforms that version 1 does not have", p)
		}
		later = later || !p.InVersion1()
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Sorted(slices.Values(strings.Split(string(marker[1]), ";"))), listed); diff != "" {
		t.Errorf("Platforms differs from the schema (-schema +list):\n%s", diff)
	}
}
