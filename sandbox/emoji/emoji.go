// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package emoji distinguishes emoji from text, for platforms that count them differently.
package emoji

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

const (
	textStyle = '\uFE0E' // selects the text presentation of the preceding character
	keycap    = '\u20E3'
)

// Is reports whether a grapheme cluster is one emoji: a flag, a keycap, or a pictograph with its modifiers and joined
// characters.
func Is(cluster string) bool {
	first, size := utf8.DecodeRuneInString(cluster)
	switch {
	case strings.ContainsRune(cluster, textStyle):
		return false
	case isRegional(first):
		return size < len(cluster)
	case '0' <= first && first <= '9', first == '#', first == '*':
		return strings.HasSuffix(cluster, string(keycap))
	default:
		return isPictographic(first)
	}
}

func isRegional(r rune) bool { return 0x1F1E6 <= r && r <= 0x1F1FF }

// isPictographic reports whether r has the property Extended_Pictographic, which uniseg does not export. The function observes its effect:
// only a pictographic character joins another across U+200D (UAX #29, rule GB11).
func isPictographic(r rune) bool {
	if r != '©' && r != '®' && r < 0x203C || r >= 0x3400 && unicode.IsLetter(r) {
		return false
	}
	return uniseg.GraphemeClusterCount(string(r)+"\u200D\U0001F600") == 1
}
