// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxLabel is the maximum length of a domain label in its ASCII form (RFC 1035, section 2.3.4).
const maxLabel = 63

// fullStops replaces IDNA's other full stops with ".". They are label characters here, but the parts between them are
// encoded separately, and they count as the dots that they become.
var fullStops = strings.NewReplacer("\u3002", ".", "\uFF0E", ".", "\uFF61", ".")

// encodable reports whether a domain label's ASCII form fits into a DNS label. As in twitter-text, its characters are
// neither mapped nor validated before they are encoded.
//
// split reports whether the label's first character is the second half of its UTF-16 form. A Go string cannot contain
// half a character, so a character from the private use area after the surrogates stands in for it: its encoding has
// the same length.
func encodable(label string, split bool) bool {
	if ascii(label) {
		return len(label) <= maxLabel
	}
	// The encoded form has at least as many characters as the label.
	if utf8.RuneCountInString(label) > maxLabel {
		return false
	}
	if split {
		first, width := utf8.DecodeRuneInString(label)
		_, half := utf16.EncodeRune(first)
		label = string(half+0x400) + label[width:]
	}
	encoded, _ := idna.Punycode.ToASCII(fullStops.Replace(label)) // the label is encoded in spite of an error
	return len(encoded) <= maxLabel
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
