// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"

	"github.com/herald-social/herald/sandbox/emoji"
)

const (
	// maxWeight is the maximum weighted length of a post by an ordinary account (twitter-text configuration v3).
	maxWeight = 280
	// linkWeight is the weight of a link of any length.
	linkWeight  = 23
	emojiWeight = 2
)

// weigh returns the weighted length of text, as X counts it.
func weigh(text string) int {
	text = norm.NFC.String(text)
	total, at := 0, 0
	for _, l := range findLinks(text) {
		total += weighPlain(text[at:l.start]) + linkWeight
		at = l.end
	}
	return total + weighPlain(text[at:])
}

// weighPlain is like weigh, for text without links.
func weighPlain(text string) int {
	if isASCII(text) {
		return len(text)
	}
	total, state := 0, -1
	for text != "" {
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		if emoji.Is(cluster) {
			total += emojiWeight
			continue
		}
		for _, r := range cluster {
			total += runeWeight(r)
		}
	}
	return total
}

// runeWeight returns 1 for runes in the configuration's ranges (Latin to Georgian, general punctuation) and 2 for all
// others.
func runeWeight(r rune) int {
	switch {
	case r <= 0x10FF, 0x2000 <= r && r <= 0x200D, 0x2010 <= r && r <= 0x201F, 0x2032 <= r && r <= 0x2037:
		return 1
	default:
		return 2
	}
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
