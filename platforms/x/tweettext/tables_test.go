// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// TestTables confirms what the look-ups rely on: both tables are searched by halving.
func TestTables(t *testing.T) {
	if !slices.IsSorted(tlds[:]) {
		t.Error("tlds is not sorted")
	}
	longest := 0
	for _, name := range tlds {
		longest = max(longest, utf8.RuneCountInString(name))
		for _, r := range name {
			if fold(r) != r {
				t.Errorf("%q is not folded", name)
			}
		}
	}
	if longest != maxTLDRunes {
		t.Errorf("the longest name has %d characters, maxTLDRunes is %d", longest, maxTLDRunes)
	}
	for i, state := range emojiStates {
		edges := emojiEdges[state.first:state.end]
		for j, edge := range edges {
			if edge.low > edge.high || j > 0 && edge.low <= edges[j-1].high {
				t.Errorf("state %d: edge %d is out of order", i, j)
			}
			if int(edge.state) >= i {
				t.Errorf("state %d leads to state %d: a sequence might not end", i, edge.state)
			}
		}
	}
}
