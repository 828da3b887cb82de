// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tweettext counts a post's length as X does: by the weighted length of twitter-text, configuration v3. A URL
// has weight 23, an emoji 2, a character of most alphabets 1 and any other character 2.
//
// The reference is twitter-text 3.1.0, the library that X publishes and that its own client uses, including where its
// results differ from a newer Unicode or a newer root zone. Two differences are visible: an emoji sequence newer than
// Emoji 11 has the total weight of its parts, and a domain without a protocol whose top-level domain is not in the
// library has the weight of its characters.
//
// All functions run in time linear in the length of the text.
package tweettext

//go:generate go run ./gen

import (
	"strings"
	"unicode/utf8"
)

const (
	// MaxWeightedLength is the maximum length of a post, in weighted characters, for an account without a subscription
	// (maxWeightedTweetLength of configuration v3).
	MaxWeightedLength = 280

	// TransformedURLLength is the weight of a URL of any length (transformedURLLength of configuration v3). X replaces
	// each URL with a t.co URL.
	TransformedURLLength = 23

	// heavyWeight is the weight of an emoji, and of each character outside the light ranges.
	heavyWeight = 2
)

// Length returns the weighted length of a post's text in Unicode's normal form C. A byte that is not UTF-8 counts as
// U+FFFD.
func Length(text string) int {
	if plain(text) {
		return len(text)
	}
	return weigh(normalize(text))
}

// HasInvalidCharacter reports whether the text contains a character that X rejects in any post: U+FFFE, U+FEFF (a byte
// order mark) or U+FFFF.
func HasInvalidCharacter(text string) bool {
	return strings.ContainsFunc(text, invalid)
}

func invalid(r rune) bool {
	return r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
}

// plain reports whether every character of the text certainly has weight one: the text is ASCII and has no dot, so it
// contains no URL.
func plain(text string) bool {
	return ascii(text) && strings.IndexByte(text, '.') < 0
}

// weigh returns the weighted length of text in normal form C.
//
// An emoji inside a URL is not counted separately, but an emoji may extend past the URL's end: as in twitter-text, the
// whole text is searched for emoji, and only those that start outside a URL are counted.
func weigh(text string) int {
	var (
		buffer    [4]found
		urls      = findURLs(text, buffer[:0])
		weight    int
		counted   int // end of the counted part of the text
		emojiDone int // end of the last emoji
	)
	for i := 0; i < len(text); {
		for len(urls) > 0 && urls[0].Start < i {
			urls = urls[1:]
		}
		r, width := utf8.DecodeRuneInString(text[i:])
		emoji := 0
		if i >= emojiDone {
			emoji = emojiLength(text[i:], width)
			emojiDone = i + emoji
		}
		switch {
		case i < counted:
		case len(urls) > 0 && urls[0].Start == i:
			weight += TransformedURLLength + urls[0].remainder
			counted = i + urls[0].covered
		case emoji > 0:
			weight += heavyWeight
			counted = i + emoji
		default:
			weight += characterWeight(r)
		}
		i += width
	}
	return weight
}

// characterWeight returns the weight of a character outside URLs and emoji sequences: the ranges and weights of
// configuration v3, divided by its scale of 100.
func characterWeight(r rune) int {
	switch {
	case r <= 0x10FF, // Latin, Greek, Cyrillic, Arabic, the Indic scripts, Thai, Georgian
		r >= 0x2000 && r <= 0x200D, // spaces of fixed width, zero width joiners
		r >= 0x2010 && r <= 0x201F, // hyphens, dashes, quotation marks
		r >= 0x2032 && r <= 0x2037: // primes
		return 1
	default:
		return heavyWeight
	}
}
