// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"unicode/utf8"
)

// punycodePrefix starts the ASCII form of a non-ASCII label (RFC 5890, the ACE prefix).
const punycodePrefix = "xn--"

// maxTLDRunes is the length of the longest top-level domain, in characters.
const maxTLDRunes = 18

// tldEnd returns the end of the longest top-level domain that starts at the offset, or -1. A name must not be followed
// by an ASCII letter or digit, '@' (an email address), '+' or '-'. Any other character ends it, so text in a script
// without spaces may follow directly. Any Punycode label is accepted.
func tldEnd(text string, at int) int {
	var (
		buffer [maxTLDRunes * utf8.UTFMax]byte
		name   = buffer[:0]
		end    = -1
		next   = at
	)
	for range maxTLDRunes {
		r, width := utf8.DecodeRuneInString(text[next:])
		if r < utf8.RuneSelf && (r|0x20 < 'a' || r|0x20 > 'z') || width == 0 {
			break
		}
		next += width
		name = utf8.AppendRune(name, fold(r))
		if !tldBoundary(text, next) {
			continue
		}
		known, more := tlds().find(string(name))
		if known {
			end = next
		}
		if !more {
			break
		}
	}
	if end < 0 && hasFoldedPrefix(text[at:], punycodePrefix) {
		rest := at + len(punycodePrefix)
		next = rest
		for next < len(text) && (alphanumeric.has(rune(text[next])) || text[next] == '-') {
			next++
		}
		if next > rest {
			end = next
		}
	}
	return end
}

func tldBoundary(text string, at int) bool {
	if at == len(text) {
		return true
	}
	c := text[at]
	return !alphanumeric.has(rune(c)) && c != '@' && c != '+' && c != '-'
}

func hasFoldedPrefix(text, prefix string) bool {
	if len(text) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}
