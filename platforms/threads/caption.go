// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/platforms"
)

const (
	// maxLength is the maximum length of a caption (Threads API, "Limitations").
	maxLength = 500
	// maxLinks is the maximum number of different links in a caption (Threads API changelog, 22 December 2025).
	maxLinks = 5
)

// length counts text as Threads does: each grapheme cluster counts as 1, except that an emoji counts as the number of
// its UTF-8 bytes.
func length(text string) int {
	n := 0
	for state := -1; text != ""; {
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		if isEmoji(cluster) {
			n += len(cluster)
		} else {
			n++
		}
	}
	return n
}

// Code points that turn the preceding character into an emoji.
const (
	emojiStyle = '\uFE0F'
	keycap     = '\u20E3'
)

// isEmoji reports whether a grapheme cluster is an emoji: a pictograph, alone or joined to others, a flag letter, a
// keycap, or a character with the emoji variation selector. Threads does not document how it counts pictographs with a
// text presentation, such as ©. They count as emoji here, so that text within this limit is also within Threads' limit.
func isEmoji(cluster string) bool {
	if cluster == "" || cluster[0] < 0x80 && len(cluster) <= 2 {
		return false
	}
	for i, r := range cluster {
		switch {
		case i == 0 && (isPictograph(r) || isFlagLetter(r)):
			return true
		case i > 0 && (r == emojiStyle || r == keycap):
			return true
		}
	}
	return false
}

// isFlagLetter reports whether r is a regional indicator, one of the letters that form flags.
func isFlagLetter(r rune) bool { return r >= '\U0001F1E6' && r <= '\U0001F1FF' }

// isPictograph reports whether r has the property Extended_Pictographic. uniseg does not export this property, but by
// rule GB11 of UAX #29 only a pictograph joins with another. The range check excludes most scripts up front.
func isPictograph(r rune) bool {
	signs := r == '©' || r == '®' || r >= '\u203C' && r <= '\u3299' || r >= '\U0001F000'
	return signs && uniseg.GraphemeClusterCount(string(r)+"\u200D\U0001F600") == 1
}

// addresses matches the strings that Threads certainly treats as links. Threads may also treat some addresses without a
// scheme as links; if there are then too many, it reports this itself, before anything is visible.
//
// A link ends at a space of any width, and at East Asian brackets and punctuation, which may follow it without a space.
// In URLs, these occur only percent-encoded (RFC 3986, section 2).
var addresses = regexp.MustCompile(`(?i)\b(?:https?://|www\.)[^\s\p{Z}<>"、。，．！？；：「」『』（）【】《》〈〉]+`)

// beginnings matches the start of another link within a link, after a non-ASCII character such as と. After an ASCII
// character, it is part of the first link, as in the path of a web archive.
var beginnings = regexp.MustCompile(`(?i)[^\x00-\x7F](?:https?://|www\.)`)

func links(text string) int {
	different := map[string]struct{}{}
	for _, at := range addressesIn(text) {
		different[text[at.Start:at.End]] = struct{}{}
	}
	return len(different)
}

func addressesIn(text string) []platforms.Link {
	var all []platforms.Link
	for _, at := range addresses.FindAllStringIndex(text, -1) {
		for start := at[0]; start < at[1]; {
			end, next := at[1], at[1]
			if other := beginnings.FindStringIndex(text[start:at[1]]); other != nil {
				end = start + other[0]
				_, size := utf8.DecodeRuneInString(text[end:])
				next = end + size
			}
			address := strings.TrimRight(text[start:end], ".,;:!?'’”)]}…")
			all = append(all, platforms.Link{Start: start, End: start + len(address)})
			start = next
		}
	}
	return all
}

// captionProblem returns the problem that Threads has with a caption, other than its length, or "" if there is none.
func captionProblem(text string) string {
	switch {
	case text != "" && strings.TrimSpace(text) == "":
		return "consists of blanks only, which Threads refuses; write some text"
	case links(text) > maxLinks:
		return "contains more than five different addresses, which Threads refuses; remove some"
	default:
		return ""
	}
}
