// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// quotedSpec matches the name of a spec in the last column of a table, such as *is removed completely*.
var quotedSpec = regexp.MustCompile(`\*([^*|]{8,})\*`)

// TestQuotedSpecs finds each spec that SECURITY.md names as the proof of a property.
func TestQuotedSpecs(t *testing.T) {
	quoted := quotedSpec.FindAllStringSubmatch(pages(t)["SECURITY.md"], -1)
	if len(quoted) == 0 {
		t.Fatal("SECURITY.md names no specs; a property without a proof is a claim")
	}
	tests := strings.Join(slices.Collect(maps.Values(texts(t, "_test.go"))), "\n")
	for _, name := range quoted {
		if !strings.Contains(tests, name[1]) {
			t.Errorf("SECURITY.md names the spec %q, which no test has", name[1])
		}
	}
}
