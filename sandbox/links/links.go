// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package links finds addresses in a text, for platforms that take only what begins with http:// or https:// for one.
package links

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Find returns the addresses in a text as pairs of byte offsets, in order. Punctuation at an address's end belongs to the
// sentence, and so does a closing bracket that has no opening one within.
func Find(text string) [][2]int {
	var out [][2]int
	previous := ' '
	for i := 0; i < len(text); {
		if n := schemeLength(text[i:]); n > 0 && !isWord(previous) {
			if end := i + n + addressLength(text[i+n:]); end > i+n {
				out = append(out, [2]int{i, end})
				previous, _ = utf8.DecodeLastRuneInString(text[:end])
				i = end
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		previous = r
		i += size
	}
	return out
}

func schemeLength(s string) int {
	for _, scheme := range []string{"https://", "http://"} {
		if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return len(scheme)
		}
	}
	return 0
}

// addressLength is how much of s belongs to the address whose scheme stands before it.
func addressLength(s string) int {
	if end := strings.IndexFunc(s, endsAddress); end >= 0 {
		s = s[:end]
	}
	return len(Trim(s))
}

// Trim takes from the end of an address what belongs to the sentence around it.
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

func endsAddress(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"“”«»`{}|", r)
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
