// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is a set of the roles that an ASCII character may play in a URL.
type class uint8

const (
	// domainCharacter may begin, end and fill a label of a domain.
	domainCharacter class = 1 << iota
	// asciiLabel belongs to a domain that is recognised without a protocol.
	asciiLabel
	// alphanumeric keeps a URL from beginning right after it, and a top-level domain from ending before it.
	alphanumeric
)

const lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// asciiClasses holds the roles of the ASCII characters.
var asciiClasses = func() (classes [utf8.RuneSelf]class) {
	for i := range classes {
		// What is neither a space nor one of these punctuation marks is a part of a domain, be it a quotation mark.
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

// has tells whether an ASCII character plays the role; no other character does.
func (c class) has(r rune) bool {
	return r >= 0 && r < utf8.RuneSelf && asciiClasses[r]&c != 0
}

// domainRune tells whether r may begin or end a label of a domain: anything but punctuation, spaces, the characters
// that no post may hold, and directional marks.
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

// labelRune tells whether r may stand inside a label of a domain.
func labelRune(r rune) bool {
	return r == '-' || r == '_' || domainRune(r)
}

// precedingRune tells whether a URL may begin right after r: not inside a word, a mention, a hashtag or a cashtag.
func precedingRune(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return !alphanumeric.has(r) && r != '@' && r != '$' && r != '#'
	case r == 0xFF20, r == 0xFF03: // full-width at sign and number sign
		return false
	}
	return !invalid(r)
}

// asciiLabelRune tells whether r may stand in a label of a domain that has no protocol: ASCII or accented Latin.
func asciiLabelRune(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiLabel.has(r)
	}
	return unicode.Is(accented, r)
}

// accented are the accented Latin letters and combining marks that twitter-text names, and what differs from one only in
// case. JavaScript compares characters by their upper case, so the iota comes in by U+0345, and letters of the phonetic
// alphabet by their capitals in Latin Extended-B.
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

// fold returns the letter by which characters that differ only in case are compared: the capital, except that a letter
// outside ASCII never stands for one inside (JavaScript's rule, by which U+017F is no S and U+212A no K).
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
