// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is a set of roles that an ASCII character has in a URL.
type class uint8

const (
	// domainCharacter may start and end a domain label, and occur within it.
	domainCharacter class = 1 << iota
	// asciiLabel may occur in a domain that is recognized without a protocol.
	asciiLabel
	// alphanumeric prevents a URL from starting right after it, and a top-level domain from ending right before it.
	alphanumeric
)

const lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// asciiClasses contains the ASCII characters' roles.
var asciiClasses = func() (classes [utf8.RuneSelf]class) {
	for i := range classes {
		// Every character except spaces and these punctuation marks is part of a domain, including a quotation mark.
		if !strings.ContainsRune("!'#%&()*+,\\-./:;<=>?@[]^_{|}~$\t\n\v\f\r ", rune(i)) {
			classes[i] |= domainCharacter
		}
	}
	for _, set := range []struct {
		characters string
		class      class
	}{
		{lettersAndDigits + "-", asciiLabel},
		{lettersAndDigits, alphanumeric},
	} {
		for _, c := range []byte(set.characters) {
			classes[c] |= set.class
		}
	}
	return classes
}()

func (c class) has(r rune) bool {
	return r >= 0 && r < utf8.RuneSelf && asciiClasses[r]&c != 0
}

// domainRune reports whether r may start or end a domain label: any character except punctuation, spaces, the
// characters that are invalid in posts, and directional marks.
func domainRune(r rune) bool {
	if r < utf8.RuneSelf {
		return domainCharacter.has(r)
	}
	switch {
	case r == 0x85, r == 0xA0, r == 0x1680, r == 0x180E, r >= 0x2000 && r <= 0x200A, r == 0x2028, r == 0x2029,
		r == 0x202F, r == 0x205F, r == 0x3000:
		return false
	case r == 0x061C, r == 0x200E, r == 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return false
	}
	return !invalid(r)
}

// labelRune reports whether r may occur within a domain label.
func labelRune(r rune) bool {
	return r == '-' || r == '_' || domainRune(r)
}

// precedingRune reports whether a URL may start right after r. It may not start within a word, a mention, a hashtag or
// a cashtag.
func precedingRune(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return !alphanumeric.has(r) && r != '@' && r != '$' && r != '#'
	case r == 0xFF20, r == 0xFF03: // full-width at sign and number sign
		return false
	}
	return !invalid(r)
}

func asciiLabelRune(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiLabel.has(r)
	}
	return unicode.Is(accented, r)
}

// accented contains twitter-text's accented Latin letters and combining marks, and all characters that differ from one
// of them only in case. JavaScript compares characters by their upper case, so U+0345 adds the iota, and the capitals
// in Latin Extended-B add letters of the phonetic alphabet.
var accented = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xC0, 0xD6, 1},
		{0xD8, 0xF6, 1},
		{0xF8, 0x24F, 1},
		{0x253, 0x254, 1},
		{0x256, 0x257, 1},
		{0x259, 0x259, 1},
		{0x25B, 0x25B, 1},
		{0x260, 0x260, 1},
		{0x263, 0x263, 1},
		{0x268, 0x269, 1},
		{0x26F, 0x26F, 1},
		{0x272, 0x272, 1},
		{0x275, 0x275, 1},
		{0x280, 0x280, 1},
		{0x283, 0x283, 1},
		{0x288, 0x28C, 1},
		{0x292, 0x292, 1},
		{0x2BB, 0x2BB, 1},
		{0x300, 0x36F, 1},
		{0x399, 0x399, 1},
		{0x3B9, 0x3B9, 1},
		{0x1E00, 0x1EFF, 1},
		{0x1FBE, 0x1FBE, 1},
		{0x2C65, 0x2C66, 1},
		{0x2C7E, 0x2C7F, 1},
		{0xA7DC, 0xA7DC, 1},
	},
}

// fold returns the character for case-insensitive comparison: the upper case, except that a non-ASCII character is
// never folded to an ASCII one (JavaScript's rule: U+017F is not S, and U+212A is not K).
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	if upper := unicode.ToUpper(r); upper >= utf8.RuneSelf {
		return upper
	}
	return r
}
