// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxLabel is the longest label of a domain, in its ASCII form (RFC 1035, section 2.3.4).
const maxLabel = 63

// fullStops are those of IDNA beside ".". They are characters of a label here, but what they separate is encoded one by
// one, and their length counts as the dots that they become.
var fullStops = strings.NewReplacer("\u3002", ".", "\uFF0E", ".", "\uFF61", ".")

// encodable tells whether the ASCII form of a domain's label fits into a label of DNS. As in twitter-text, its characters
// are neither mapped nor checked before they are encoded.
//
// split: the label's first character is the second half of its UTF-16 form. No string can hold half a character; one of
// the private area behind the halves takes as many digits.
func encodable(label string, split bool) bool {
	if ascii(label) {
		return len(label) <= maxLabel
	}
	// Each character takes at least one of the encoded form.
	if utf8.RuneCountInString(label) > maxLabel {
		return false
	}
	if split {
		first, width := utf8.DecodeRuneInString(label)
		_, half := utf16.EncodeRune(first)
		label = string(half+0x400) + label[width:]
	}
	encoded, _ := idna.Punycode.ToASCII(fullStops.Replace(label)) // what it calls an error is encoded all the same
	return len(encoded) <= maxLabel
}

// ascii tells whether the text is ASCII throughout.
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
