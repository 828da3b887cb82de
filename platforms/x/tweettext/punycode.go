// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLabel is the longest label of a domain, in its ASCII form (RFC 1035, section 2.3.4).
const maxLabel = 63

// The parameters of Punycode (RFC 3492, section 5).
const (
	punycodeBase        = 36
	punycodeMinimum     = 1
	punycodeMaximum     = 26
	punycodeSkew        = 38
	punycodeDamp        = 700
	punycodeInitialBias = 72
)

// encodable tells whether the ASCII form of a domain's label fits into a label of DNS. Package idna is not used since
// twitter-text neither maps nor checks a label's characters before it encodes them, nor the length of the whole domain.
//
// The other full stops of IDNA are characters of a label here, but what they separate is encoded one by one, and their
// length counts as the dots that they become. split: the label's first character is the second half of its UTF-16 form.
func encodable(label string, split bool) bool {
	if len(label) <= maxLabel && ascii(label) {
		return true
	}
	length := 0
	for {
		end := strings.IndexAny(label, "\u3002\uFF0E\uFF61")
		if end < 0 {
			return length+encodedLength(label, split) <= maxLabel
		}
		length += encodedLength(label[:end], split) + 1
		if length > maxLabel {
			return false
		}
		_, width := utf8.DecodeRuneInString(label[end:])
		label, split = label[end+width:], false
	}
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

// encodedLength returns the length of the label's ASCII form, or more than maxLabel if it is longer than that.
func encodedLength(label string, split bool) int {
	if ascii(label) {
		return len(label)
	}
	var (
		buffer [maxLabel]rune
		runes  = buffer[:0]
		basic  int
	)
	for _, r := range label {
		// Each character takes at least one of the encoded form.
		if len(runes) == maxLabel-len(punycodePrefix) {
			return maxLabel + 1
		}
		if split {
			_, r = utf16.EncodeRune(r)
			split = false
		}
		if r < utf8.RuneSelf {
			basic++
		}
		runes = append(runes, r)
	}
	length := len(punycodePrefix) + basic
	if basic > 0 {
		length++ // the delimiter
	}
	return length + deltasLength(runes, basic)
}

// deltasLength returns the number of digits with which Punycode tells the characters outside ASCII and their places: the
// encoding procedure of RFC 3492, section 6.3, without writing the digits down.
func deltasLength(runes []rune, basic int) int {
	var (
		length  int
		delta   int
		bias    = punycodeInitialBias
		handled = basic
	)
	for n := rune(utf8.RuneSelf); handled < len(runes); n++ {
		next := rune(math.MaxInt32)
		for _, r := range runes {
			if r >= n && r < next {
				next = r
			}
		}
		delta += int(next-n) * (handled + 1)
		n = next
		for _, r := range runes {
			switch {
			case r < n:
				delta++
			case r == n:
				length += digits(delta, bias)
				bias = adapt(delta, handled+1, handled == basic)
				delta = 0
				handled++
			}
		}
		delta++
	}
	return length
}

// digits returns the number of digits of a generalised variable-length integer (RFC 3492, section 3.3).
func digits(value, bias int) int {
	count := 1
	for k := punycodeBase; ; k += punycodeBase {
		threshold := min(max(k-bias, punycodeMinimum), punycodeMaximum)
		if value < threshold {
			return count
		}
		value = (value - threshold) / (punycodeBase - threshold)
		count++
	}
}

// adapt returns the bias for the next delta (RFC 3492, section 6.1).
func adapt(delta, points int, first bool) int {
	if first {
		delta /= punycodeDamp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (punycodeBase-punycodeMinimum)*punycodeMaximum/2; k += punycodeBase {
		delta /= punycodeBase - punycodeMinimum
	}
	return k + (punycodeBase-punycodeMinimum+1)*delta/(delta+punycodeSkew)
}
