// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import "unicode/utf8"

// emojiLength returns the length in bytes of the longest emoji sequence of two or more code points at the start of the
// text, or 0. width is the length of the first code point.
//
// The sequences are exactly those of twitter-text (Emoji 11: skin tones, families, professions, flags, keycaps,
// presentation selectors). Newer sequences are deliberately not combined, because X counts their parts. A single code
// point does not need a lookup: its weight does not depend on whether it is an emoji.
func emojiLength(text string, width int) int {
	length := 0
	for more := width < len(text) && joins(text[width:]); more; {
		_, next := utf8.DecodeRuneInString(text[width:])
		width += next
		var known bool
		if known, more = emoji().find(text[:width]); known {
			length = width
		}
		more = more && width < len(text)
	}
	return length
}

// joins reports whether the text starts with a code point that may be the second of a sequence: a joiner, a keycap, a
// presentation selector, a flag letter, a skin tone or a tag. Most texts contain none of these and do not need a
// lookup.
func joins(text string) bool {
	if text[0] < 0xE2 {
		return false
	}
	switch r, _ := utf8.DecodeRuneInString(text); {
	case r == 0x200D, r == 0x20E3, r == 0xFE0F, r >= 0x1F1E6 && r <= 0x1F1FF, r >= 0x1F3FB && r <= 0x1F3FF, r == 0xE0067:
		return true
	default:
		return false
	}
}
