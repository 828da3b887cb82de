// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// plainLetters are the plain spellings of letters that Unicode does not decompose.
var plainLetters = map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'þ': "th", 'ħ': "h", 'ı': "i", 'ς': "σ"}

// Plain normalizes text for a search: to lower case and without diacritics, so that "resume" finds "Résumé". Every
// run of white space is replaced by one space. Most texts are ASCII, for which no tables are consulted.
func Plain(text string) string {
	if isASCII(text) {
		return strings.Join(strings.Fields(strings.ToLower(text)), " ")
	}
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range norm.NFKD.String(text) {
		r = unicode.ToLower(r)
		if plain, ok := plainLetters[r]; ok {
			b.WriteString(plain)
		} else if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	// Composing makes Korean syllables one letter again.
	return strings.Join(strings.Fields(norm.NFC.String(b.String())), " ")
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
