// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// TestTables checks that both tables are sorted, as the binary search requires.
func TestTables(t *testing.T) {
	if !slices.IsSorted(tlds) || !slices.IsSorted(emoji) {
		t.Error("a table is not sorted")
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
	for _, sequence := range emoji {
		_, width := utf8.DecodeRuneInString(sequence)
		if emojiLength(sequence, width) != len(sequence) {
			t.Errorf("%+q is not taken as one emoji", sequence)
		}
	}
	if len(tlds) != 1574 || len(emoji) != 1915 {
		t.Errorf("there are %d names and %d sequences; twitter-text 3.1.0 has 1574 and 1915", len(tlds), len(emoji))
	}
}
