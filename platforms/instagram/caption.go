// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Meta documents how many hashtags and mentions a caption may have ("IG User Media", parameter caption), and not what one is.
// What is counted here is what Instagram shows as a link, read as others who parse its captions read it: the letters of a
// hashtag are those of Unicode's hashtag identifiers (UAX #31, section 6), with emoji, as the sign may only stand where no
// word goes on; names are ASCII. Where these readings differ the lower count holds: Instagram says itself, before anything is
// visible, that a caption has too many, and a caption that it would take is never refused here for a count that is in doubt.
var (
	// addresses are what reads as an address of the web, in which # begins a fragment and @ belongs to a path.
	addresses = regexp.MustCompile(`(?i)(^|[^\p{L}\p{N}_@#＃.-])(?:(?:https?://|www\.)[^\s\p{Z}]+|(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}/[^\s\p{Z}]*)`)
	// hashtags are words behind the sign, in ASCII or as wide as kanji. A sign with a selector or U+20E3 behind it is a keycap.
	hashtags = regexp.MustCompile(`[#＃][\p{L}\p{N}_` + pictographs + `][\p{L}\p{M}\p{N}_\x{200D}` + pictographs + `]*`)
	// mentions are names of accounts. A name has letters, digits, underscores and dots, and begins with no dot.
	mentions = regexp.MustCompile(`@[A-Za-z0-9_][A-Za-z0-9_.]*`)
)

// pictographs are the blocks of emoji, as a regular expression has them. Hashtags of Instagram may hold emoji ("Emojineering",
// Instagram Engineering, 2015).
const pictographs = `\x{2300}-\x{23FF}\x{2600}-\x{27BF}\x{2B00}-\x{2BFF}\x{1F000}-\x{1FAFF}`

// captionProblem names what Instagram refuses besides length.
func captionProblem(text string) string {
	if n := countHashtags(text); n > maxHashtags {
		return fmt.Sprintf("has %d hashtags; Instagram takes at most %d; leave some out", n, maxHashtags)
	}
	if n := countMentions(text); n > maxMentions {
		return fmt.Sprintf("mentions %d accounts; Instagram takes at most %d; leave some out", n, maxMentions)
	}
	return ""
}

// countHashtags counts the hashtags of a caption. One may follow another without a blank. A sign in a word begins none, nor
// does that of an escaped character such as &#39;.
func countHashtags(text string) int {
	text = addresses.ReplaceAllString(text, "$1 ")
	n, end := 0, -1
	for _, at := range hashtags.FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:at[0]])
		escaped := before == '&' && strings.HasPrefix(text[at[1]:], ";")
		if at[0] == end || !inWord(before) && !escaped {
			n++
			end = at[1]
		}
	}
	return n
}

// countMentions counts the mentions of a caption. An address of mail has none, and neither @ beside another one nor the wide
// form of it begins one.
func countMentions(text string) int {
	text = addresses.ReplaceAllString(text, "$1 ")
	n := 0
	for _, at := range mentions.FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:at[0]])
		if !inWord(before) && before != '.' && before != '@' {
			n++
		}
	}
	return n
}

// inWord reports whether a word goes on behind a character. The selectors of the styles of emoji are marks, and end none. At
// the beginning of a text there is U+FFFD.
func inWord(r rune) bool {
	return r == '_' || unicode.In(r, unicode.L, unicode.N, unicode.Mn, unicode.Mc) && r != '\uFE0E' && r != '\uFE0F'
}
