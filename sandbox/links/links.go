// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package links finds addresses in text, for platforms that recognize only http:// and https:// addresses.
package links

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var pattern = regexp.MustCompile("(?i)(https?://)([^\\s\\pC<>\"“”«»`{}|]+)")

// Find returns the addresses in text as pairs of byte offsets, in order. Punctuation at the end of an address belongs
// to the sentence, as does a closing bracket without an opening one in the address.
func Find(text string) [][2]int {
	var out [][2]int
	for _, m := range pattern.FindAllStringSubmatchIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:m[0]])
		if address := Trim(text[m[4]:m[5]]); address != "" && !isWord(before) {
			out = append(out, [2]int{m[0], m[4] + len(address)})
		}
	}
	return out
}

// Trim removes the sentence's punctuation from the end of an address.
func Trim(s string) string {
	for s != "" {
		last, size := utf8.DecodeLastRuneInString(s)
		opening := map[rune]string{')': "(", ']': "["}[last]
		switch {
		case strings.ContainsRune(".,;:!?'*_~…", last):
		case opening != "" && strings.Count(s, string(last)) > strings.Count(s, opening):
		default:
			return s
		}
		s = s[:len(s)-size]
	}
	return ""
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
