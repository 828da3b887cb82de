// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import "unicode/utf8"

// emojiState is a state of the automaton in emojiEdges[first:end].
type emojiState struct {
	first, end uint16
	// accept: what led here is an emoji.
	accept bool
}

// emojiEdge leads to a state by any of a run of code points.
type emojiEdge struct {
	low, high rune
	state     uint8
}

// emojiLength returns the length in bytes of the longest emoji sequence of two or more code points with which the text
// begins, or 0. r is the text's first code point, of the given width.
//
// The sequences are exactly those that twitter-text knows (Emoji 11: skin tones, families, professions, flags, keycaps,
// presentation selectors). Grapheme clusters of a newer Unicode are deliberately not taken together: X counts their
// parts. One code point alone needs no look-up: as an emoji or not, it weighs the same.
func emojiLength(text string, r rune, width int) int {
	// No sequence begins with two ASCII characters, and most text is ASCII.
	if len(text) <= width || r < utf8.RuneSelf && text[width] < utf8.RuneSelf {
		return 0
	}
	length := 0
	for at, state := 0, emojiRoot; ; {
		next, ok := emojiNext(state, r)
		if !ok {
			return length
		}
		state = next
		at += width
		if emojiStates[state].accept {
			length = at
		}
		if at == len(text) {
			return length
		}
		r, width = utf8.DecodeRuneInString(text[at:])
	}
}

// emojiNext returns the state to which r leads.
func emojiNext(state int, r rune) (int, bool) {
	low, high := int(emojiStates[state].first), int(emojiStates[state].end)
	for low < high {
		middle := (low + high) / 2
		switch edge := &emojiEdges[middle]; {
		case r < edge.low:
			high = middle
		case r > edge.high:
			low = middle + 1
		default:
			return int(edge.state), true
		}
	}
	return 0, false
}
