// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

const (
	// maxLength is the greatest length of a text (Threads API, "Limitations").
	maxLength = 500
	// maxLinks is how many different addresses a text may hold (Threads API
	// changelog, 22 December 2025).
	maxLinks = 5
)

// length counts a text as Threads does: one for each character that a reader
// sees, but for an emoji the bytes of its UTF-8 form.
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

// Code points that make an emoji of what stands before them.
const (
	emojiStyle = '\uFE0F'
	keycap     = '\u20E3'
)

// isEmoji reports whether a grapheme cluster is an emoji: a pictograph, alone or
// joined to others, a letter of a flag, a keycap, or what the selector of the
// emoji style makes one. Threads does not say what it does with pictographs
// that are not shown as emoji, such as ©; they count as the emoji that they
// may be, so that a text which is short enough here is so there.
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

// isFlagLetter reports whether r is one of the letters that flags are written
// with, the regional indicators.
func isFlagLetter(r rune) bool { return r >= '\U0001F1E6' && r <= '\U0001F1FF' }

// isPictograph reports whether r has the property Extended_Pictographic. The
// segmentation knows it without telling, but by its rule GB11 only a
// pictograph is joined to another one. Most scripts lie outside of where the
// pictographs are, and need not be tried.
func isPictograph(r rune) bool {
	signs := r == '©' || r == '®' || r >= '\u203C' && r <= '\u3299' || r >= '\U0001F000'
	return signs && uniseg.GraphemeClusterCount(string(r)+"\u200D\U0001F600") == 1
}

// addresses are what Threads certainly takes for links. What looks like one
// without a scheme may be one as well; Threads says so itself, before anything
// is visible.
//
// An address ends at a blank of any width, and at the brackets and stops of East Asian texts, which stand between words
// without a blank and which an address has in percent-encoded form alone (RFC 3986, section 2).
var addresses = regexp.MustCompile(`(?i)\b(?:https?://|www\.)[^\s\p{Z}<>"、。，．！？；：「」『』（）【】《》〈〉]+`)

// beginnings are where another address may begin within one: behind a character that is not ASCII, such as と. Behind an ASCII
// one it is a part of the first, such as a page of an archive has in its path.
var beginnings = regexp.MustCompile(`(?i)[^\x00-\x7F](?:https?://|www\.)`)

// links counts the different addresses in a text.
func links(text string) int {
	different := map[string]struct{}{}
	for _, found := range addresses.FindAllString(text, -1) {
		for found != "" {
			address, rest := found, ""
			if next := beginnings.FindStringIndex(found); next != nil {
				_, size := utf8.DecodeRuneInString(found[next[0]:])
				address, rest = found[:next[0]], found[next[0]+size:]
			}
			different[strings.TrimRight(address, ".,;:!?'’”)]}…")] = struct{}{}
			found = rest
		}
	}
	return len(different)
}

// captionProblem names what Threads refuses besides length.
func captionProblem(text string) string {
	switch {
	case text != "" && strings.TrimSpace(text) == "":
		return "consists of blanks only, which Threads refuses; write some text"
	case links(text) > maxLinks:
		return "holds more than five different addresses, which Threads refuses; remove some"
	default:
		return ""
	}
}
