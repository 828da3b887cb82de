// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// graphemeJoiner is U+034F, which package norm inserts into a sequence of more than 30 marks for the stream-safe format
// (UAX #15, section 13).
const graphemeJoiner = "\u034f"

// normalize returns the text in Unicode's normal form C, without the joiners of the stream-safe format. X does not add
// these joiners, so they must neither count nor prevent marks from being composed. Package norm does not change marks
// after bytes that are not UTF-8, so these are first replaced by U+FFFD.
func normalize(text string) string {
	if belowMarks(text) {
		return text
	}
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	if strings.ContainsFunc(text, newer) {
		return compose(decompose(text))
	}
	if norm.NFC.IsNormalString(text) {
		return text
	}
	normal := norm.NFC.String(text)
	if strings.Count(normal, graphemeJoiner) == strings.Count(text, graphemeJoiner) {
		return normal
	}
	return compose(decompose(text))
}

// belowMarks reports whether normal form C cannot change any of the text's characters because all are below U+0300, the
// first combining mark and the first character whose UTF-8 starts with 0xCC.
func belowMarks(text string) bool {
	for i := range len(text) {
		if text[i] >= 0xCC {
			return false
		}
	}
	return true
}

// mark is a code point with its canonical combining class, which is 0 for a starter.
type mark struct {
	r     rune
	class uint8
}

// decompose returns the text's canonical decomposition, in canonical order, regardless of the length of its sequences
// of marks.
func decompose(text string) []mark {
	marks := make([]mark, 0, utf8.RuneCountInString(text))
	for _, whole := range text {
		if pair, ok := newPairs[whole]; ok {
			marks = append(marks, decompose(string(pair[:]))...)
			continue
		}
		for _, r := range norm.NFD.String(string(whole)) {
			marks = append(marks, mark{r, max(norm.NFD.PropertiesString(string(r)).CCC(), newClass(r))})
		}
	}
	for first := 0; first < len(marks); first++ {
		end := first
		for end < len(marks) && marks[end].class != 0 {
			end++
		}
		slices.SortStableFunc(marks[first:end], func(a, b mark) int { return cmp.Compare(a.class, b.class) })
		first = end
	}
	return marks
}

// compose applies the Unicode standard's canonical composition algorithm (section 3.11) to a canonical decomposition: a
// mark is composed with the character before it unless a mark of the same or a higher class is between them.
func compose(marks []mark) string {
	joined := marks[:0]
	starter := -1
	for _, m := range marks {
		last := len(joined) - 1
		if starter >= 0 && (last == starter || joined[last].class < m.class) {
			if r, ok := join(joined[starter].r, m.r); ok {
				joined[starter].r = r
				continue
			}
		}
		if m.class == 0 {
			starter = len(joined)
		}
		joined = append(joined, m)
	}
	var b strings.Builder
	for _, m := range joined {
		b.WriteRune(m.r)
	}
	return b.String()
}

// join returns the single code point that a and b compose to in normal form C, if any.
func join(a, b rune) (rune, bool) {
	if r, ok := newJoins[[2]rune{a, b}]; ok {
		return r, true
	}
	pair := norm.NFC.String(string([]rune{a, b}))
	r, width := utf8.DecodeRuneInString(pair)
	return r, width == len(pair)
}
