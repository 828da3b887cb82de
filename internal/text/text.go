// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text compares, shortens and checks text.
package text

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const ellipsis = "…"

// ASCII characters, for Consists.
const (
	Digits  = "0123456789"
	Upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	Lower   = "abcdefghijklmnopqrstuvwxyz"
	Letters = Upper + Lower
)

// Consists reports whether text consists of least to most of the given ASCII characters. A regular expression with
// the same bounds is compiled into a copy for each repetition, some 20 KiB in every process.
func Consists(text string, least, most int, of string) bool {
	return len(text) >= least && len(text) <= most && strings.Trim(text, of) == ""
}

// Fold normalizes text for comparison: to NFC, with every run of white space replaced by one space. A platform may trim
// the text that it returns, change its white space, and compose its letters.
func Fold(text string) string { return strings.Join(strings.Fields(norm.NFC.String(text)), " ") }

// First returns the first limit characters of text.
func First(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit])
}

// Truncate shortens text to at most limit characters, as schemas count them, with a final "…". limit is at least 1.
func Truncate(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return First(text, limit-1) + ellipsis
}

// TruncateBytes shortens text to at most limit bytes. It keeps whole characters and adds a final "…". limit is at least
// 3.
func TruncateBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
