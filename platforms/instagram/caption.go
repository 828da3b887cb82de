// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/herald-social/herald/platforms"
)

// Meta documents how many hashtags and mentions a caption may have ("IG User Media", parameter caption), but does not
// define them. Herald counts the ones that Instagram shows as links, as other caption parsers do: a hashtag consists of
// the letters of Unicode's hashtag identifiers (UAX #31, section 6) and emoji, and its # must not follow a word; names
// are ASCII. Where parsers disagree, the lower count is used: Instagram itself reports an excess before anything is
// visible, and a caption that it would accept must not be refused here because of a doubtful count.
//
// Expressions with Unicode's classes are large, so they are only compiled in processes that count captions.
var (
	// addresses matches web addresses, where # starts a fragment and @ is part of a path.
	addresses = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|[^\p{L}\p{N}_@#＃.-])(?:(?:https?://|www\.)[^\s\p{Z}]+|(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}/[^\s\p{Z}]*)`)
	})
	// hashtags matches hashtags with an ASCII or full-width #. A # followed by a variation selector or U+20E3 is a
	// keycap.
	hashtags = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[#＃][\p{L}\p{N}_` + pictographs + `][\p{L}\p{M}\p{N}_\x{200D}` + pictographs + `]*`)
	})
	// mentions matches account names, which consist of letters, digits, underscores and dots, and do not start with a
	// dot.
	mentions = regexp.MustCompile(`@[A-Za-z0-9_][A-Za-z0-9_.]*`)
)

// pictographs are the emoji blocks, for use in a regular expression. Instagram's hashtags may contain emoji
// ("Emojineering", Instagram Engineering, 2015).
const pictographs = `\x{2300}-\x{23FF}\x{2600}-\x{27BF}\x{2B00}-\x{2BFF}\x{1F000}-\x{1FAFF}`

// captionProblem returns the problem that Instagram has with a caption, other than its length, or "" if there is none.
func captionProblem(text string) string {
	if n := countHashtags(text); n > maxHashtags {
		return fmt.Sprintf("has %d hashtags; Instagram accepts at most %d; leave some out", n, maxHashtags)
	}
	if n := countMentions(text); n > maxMentions {
		return fmt.Sprintf("mentions %d accounts; Instagram accepts at most %d; leave some out", n, maxMentions)
	}
	return ""
}

// countHashtags counts a caption's hashtags, which may follow each other without a space. It ignores a # within a word,
// and the # in an escaped character such as &#39;.
func countHashtags(text string) int { return len(hashtagsIn(withoutAddresses(text))) }

func hashtagsIn(text string) []platforms.Link {
	var tags []platforms.Link
	end := -1
	for _, at := range hashtags().FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:at[0]])
		escaped := before == '&' && strings.HasPrefix(text[at[1]:], ";")
		if at[0] == end || !inWord(before) && !escaped {
			tags = append(tags, platforms.Link{Start: at[0], End: at[1]})
			end = at[1]
		}
	}
	return tags
}

// withoutAddresses replaces each web address with blanks of the same length, which preserves all offsets.
func withoutAddresses(text string) string {
	blanked := []byte(text)
	for _, at := range addresses().FindAllStringSubmatchIndex(text, -1) {
		for i := at[3]; i < at[1]; i++ {
			blanked[i] = ' '
		}
	}
	return string(blanked)
}

// countMentions counts a caption's mentions. An email address is not a mention. A doubled @ and the full-width form do
// not start one.
func countMentions(text string) int { return len(mentionsIn(withoutAddresses(text))) }

func mentionsIn(text string) []platforms.Link {
	var names []platforms.Link
	for _, at := range mentions.FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:at[0]])
		if !inWord(before) && before != '.' && before != '@' {
			names = append(names, platforms.Link{Start: at[0], End: at[1]})
		}
	}
	return names
}

// inWord reports whether the next character continues a word after r. The emoji variation selectors are marks, but end
// a word. At the start of the text, r is U+FFFD.
func inWord(r rune) bool {
	return r == '_' || unicode.In(r, unicode.L, unicode.N, unicode.Mn, unicode.Mc) && r != '\uFE0E' && r != '\uFE0F'
}
