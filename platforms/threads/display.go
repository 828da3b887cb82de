// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"regexp"
	"slices"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/textlinks"
)

// mentions matches account names. They are the same as on Instagram, with at most 30 characters.
var mentions = textlinks.Pattern{
	Match:  regexp.MustCompile(`@[A-Za-z0-9_][A-Za-z0-9_.]{0,29}`),
	Accept: func(before, _ string) bool { return !textlinks.EndsInWord(before) },
	Trim:   ".",
}

// shownLinks returns the addresses, the mentions and the topic in text. The first hashtag is the post's topic;
// Threads does not link any others ("Topic Tags").
func shownLinks(text string) []platforms.Link {
	found := textlinks.Find(text, addressesIn(text), mentions)
	topic := -1
	return slices.DeleteFunc(textlinks.Find(text, found, textlinks.Hashtags), func(l platforms.Link) bool {
		if !strings.HasPrefix(text[l.Start:], "#") {
			return strings.HasPrefix(text[l.Start:], "＃")
		}
		if topic < 0 {
			topic = l.Start
		}
		return l.Start != topic
	})
}
