// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FuzzLength checks what holds for every text: its length does not depend on its normal form, grows with the text, and
// stays within the weights of its parts.
func FuzzLength(f *testing.F) {
	for _, row := range lengthRows {
		f.Add(row.text)
	}
	for _, row := range urlRows {
		f.Add(row.text)
	}
	f.Add("a.co\x80")
	f.Add("\xf5\u0344")
	f.Fuzz(func(t *testing.T, text string) {
		length := Length(text)
		normal := normalize(text)
		if got := Length(normal); got != length {
			t.Errorf("in normal form C the length is %d, not %d", got, length)
		}
		// Package norm's own form differs only if it adds joiners.
		if form := norm.NFC.String(text); strings.Count(form, graphemeJoiner) == strings.Count(text, graphemeJoiner) {
			if got := Length(form); got != length {
				t.Errorf("in package norm's normal form C the length is %d, not %d", got, length)
			}
		}
		if got := Length(string([]rune(text))); got != length {
			t.Errorf("with U+FFFD for what is not UTF-8 the length is %d, not %d", got, length)
		}
		if got := Length(text + "\nx"); got != length+2 {
			t.Errorf("with two characters on a new line the length is %d, not %d", got, length+2)
		}

		urls := urlsIn(normal)
		if most := heavyWeight*utf8.RuneCountInString(normal) + TransformedURLLength*len(urls); length > most {
			t.Errorf("the length is %d, more than its parts can weigh: %d", length, most)
		}
		if (length == 0) != (text == "") {
			t.Errorf("the length is %d", length)
		}
		checkRanges(t, normal, urls)
		checkRanges(t, text, urlsIn(text))
	})
}

// checkRanges checks that the ranges are in order, on character boundaries, and that each contains a domain.
func checkRanges(t *testing.T, text string, ranges []Range) {
	last := -1
	for _, r := range ranges {
		if r.Start <= last || r.End <= r.Start || r.End > len(text) {
			t.Fatalf("%v is out of order in a text of %d bytes", ranges, len(text))
		}
		last = r.Start
		if utf8.ValidString(text) && !utf8.ValidString(text[r.Start:r.End]) {
			t.Errorf("%v cuts a character", r)
		}
		if !strings.Contains(text[r.Start:r.End], ".") {
			t.Errorf("%q is no URL", text[r.Start:r.End])
		}
	}
}
