// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/textlinks"
	"github.com/herald-social/herald/platforms/x/tweettext"
)

// links returns the addresses, hashtags, mentions and cashtags in text, as twitter-text 3.1.0 finds them.
func links(text string) []platforms.Link {
	var found []platforms.Link
	for _, at := range tweettext.URLs(text) {
		found = append(found, platforms.Link{Start: at.Start, End: at.End, Shown: displayURL(text[at.Start:at.End])})
	}
	return textlinks.Find(text, found, hashtagLink, mentionLink, textlinks.Pattern{Match: cashtag})
}

var (
	// hashtagLink follows twitter-text's validHashtag: a hashtag contains a letter and is not followed by another #
	// or by ://.
	hashtagLink = textlinks.Pattern{
		Match: regexp.MustCompile(`[#＃](?:[\p{Nd}_][\p{L}\p{M}\p{Nd}_]*)?\p{L}[\p{L}\p{M}\p{Nd}_]*`),
		Accept: func(before, after string) bool {
			return !textlinks.EndsInWord(strings.TrimRight(before, "\ufe0e\ufe0f")) && !strings.HasSuffix(before, "&") && !continues(after, '#', '＃')
		},
	}
	// mentionLink follows twitter-text's validMentionOrList, without lists.
	mentionLink = textlinks.Pattern{
		Match: regexp.MustCompile("[@＠][A-Za-z0-9_]{1,20}"),
		Accept: func(before, after string) bool {
			last, _ := utf8.DecodeLastRuneInString(before)
			blocked := last < utf8.RuneSelf && (unicode.IsLetter(last) || unicode.IsDigit(last)) || strings.ContainsRune("_!#$%&*@＠", last)
			return !blocked && !continues(after, '@', '＠')
		},
	}
)

// continues reports whether the text after an apparent hashtag or mention shows that it is not one.
func continues(after string, signs ...rune) bool {
	first, _ := utf8.DecodeRuneInString(after)
	return strings.HasPrefix(after, "://") || first == signs[0] || first == signs[1]
}

// displayedPath is the number of characters of an address's path that X shows, including the slash (display_url in the
// API's examples: dev.twitter.com/terms/display-…, youtube.com/watch?v=oHg5SJ…).
const displayedPath = 15

// beforeHost matches the part of an address that X omits.
var beforeHost = regexp.MustCompile(`(?i)^(?:https?://)?(?:www\.)?`)

// displayURL returns the text that X shows for an address: its host and the beginning of its path.
func displayURL(address string) string {
	address = strings.TrimSuffix(address[len(beforeHost.FindString(address)):], "/")
	host := len(address)
	if at := strings.IndexAny(address, "/?#"); at >= 0 {
		host = at
	}
	if path := []rune(address[host:]); len(path) > displayedPath {
		return address[:host] + string(path[:displayedPath]) + "…"
	}
	return address
}
