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
	// pathCharacter may stand in a path, outside and inside parentheses.
	pathCharacter
	// pathEnd may be a path's last character.
	pathEnd
	// queryCharacter may stand in a query.
	queryCharacter
	// queryEnd may be a query's last character.
	queryEnd
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
		{lettersAndDigits + "!*';:=+,.$/%#[]-_~@|&", pathCharacter},
		{lettersAndDigits + "+-=_#/", pathEnd},
		{lettersAndDigits + "!?*'@();:&=+$/%#[]-_.,~|", queryCharacter},
		{lettersAndDigits + "-_&=#/", queryEnd},
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
	return accented(r)
}

// pathRune tells whether r may stand in a path.
func pathRune(r rune) bool {
	if r < utf8.RuneSelf {
		return pathCharacter.has(r)
	}
	return r == 0x2013 || cyrillic(r) || accented(r)
}

// pathEndRune tells whether r may be the last character of a path, so that "a.com/b." does not take the full stop.
func pathEndRune(r rune) bool {
	if r < utf8.RuneSelf {
		return pathEnd.has(r)
	}
	return cyrillic(r) || accented(r)
}

// accented tells whether r is one of the accented Latin letters and combining marks that twitter-text names, or differs
// from one only in case. JavaScript compares characters by their upper case, so the iota comes in by U+0345, and letters
// of the phonetic alphabet by their capitals in Latin Extended-B.
func accented(r rune) bool {
	switch {
	case r < 0xC0 || r > 0x2C7F && r != 0xA7DC:
		return false
	case r <= 0x24F:
		return r != 0xD7 && r != 0xF7
	case r <= 0x2BB:
		return strings.ContainsRune("\u0253\u0254\u0256\u0257\u0259\u025B\u0260\u0263\u0268\u0269\u026F\u0272\u0275\u0280"+
			"\u0283\u0288\u0289\u028A\u028B\u028C\u0292\u02BB", r)
	case r >= 0x300 && r <= 0x36F, r >= 0x1E00 && r <= 0x1EFF:
		return true
	}
	switch r {
	case 0x399, 0x3B9, 0x1FBE, 0x2C65, 0x2C66, 0x2C7E, 0x2C7F, 0xA7DC:
		return true
	}
	return false
}

// cyrillic tells whether r is in Unicode's Cyrillic block, or one of the letters U+1C80 to U+1C87 whose capitals are.
func cyrillic(r rune) bool {
	return r >= 0x400 && r <= 0x4FF || r >= 0x1C80 && r <= 0x1C87
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
