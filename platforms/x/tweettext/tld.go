// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"unicode/utf8"
)

// punycodePrefix begins a label that stands for one outside ASCII (RFC 5890, the ACE prefix).
const punycodePrefix = "xn--"

// maxTLDRunes is the length in characters of the longest top-level domain.
const maxTLDRunes = 18

// tldEnd returns where the longest top-level domain that begins at the offset ends, or -1. A name must not be followed
// by an ASCII letter or digit, '@' (an e-mail address), '+' or '-'; any other character ends it, so that it may touch
// text in a script that is written without spaces. A label in Punycode is taken as it stands.
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
		known, more := tlds.find(string(name))
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

// tldBoundary tells whether a top-level domain may end at the offset.
func tldBoundary(text string, at int) bool {
	if at == len(text) {
		return true
	}
	c := text[at]
	return !alphanumeric.has(rune(c)) && c != '@' && c != '+' && c != '-'
}

// hasFoldedPrefix tells whether the text begins with an ASCII prefix, given in small letters, whatever the case.
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
