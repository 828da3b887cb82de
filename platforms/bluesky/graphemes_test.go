// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"strings"
	"testing"
)

// TestGraphemes checks texts whose lengths differ between Unicode 15.0 and 15.1. The tests in test/bluesky compare the
// lengths of other texts with Bluesky's own client.
func TestGraphemes(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       int
	}{
		{"a virama joins two consonants of Devanagari", "\u0915\u094d\u0937", 1},
		{"a conjunct of three consonants is one", "\u0938\u094d\u0924\u094d\u0930", 1},
		{"a nukta does not prevent the conjunct", "\u0915\u093c\u094d\u0937", 1},
		{"a zero width joiner asks for the half form, which is one", "\u0915\u094d\u200d\u0937", 1},
		{"a zero width non-joiner divides", "\u0915\u094d\u200c\u0937", 2},
		{"a vowel sign ends the conjunct", "\u0915\u094d\u0937\u093f\u0915", 2},
		{"a virama at the end joins nothing", "\u0915\u094d a", 3},
		{"a virama after a letter of another script does not join", "a\u094d\u0937", 2},
		{"Bengali has conjuncts", "\u0995\u09cd\u09b7", 1},
		{"Tamil is divided: the rule does not have its virama", "\u0b95\u0bcd\u0bb7", 2},
		{"conjuncts and spaces count one each", strings.Repeat("\u0915\u094d\u0937 ", 150), 300},
		{"emoji are counted by uniseg", "\U0001F44D\U0001F3FD\U0001F1E9\U0001F1EA", 2},
		{"nothing counts nothing", "", 0},
	} {
		if got := graphemes(row.text); got != row.want {
			t.Errorf("%s: %+q counts %d, want %d", row.name, row.text, got, row.want)
		}
	}
}
