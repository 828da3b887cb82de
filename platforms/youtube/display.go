// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"regexp"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/textlinks"
)

const (
	// foldAfter and foldLines are how much of a description readers see before "...more". YouTube documents
	// neither; publishing tools agree on about 157 characters in three lines.
	foldAfter, foldLines = 157, 3
	// maxHashtags is the maximum number of hashtags. If a description has more, YouTube ignores all of them ("Use
	// hashtags for video search").
	maxHashtags = 60
	// shownAddress is the number of characters of a long address that a description shows before an ellipsis.
	shownAddress = 37
)

// mention matches a handle, which has 3 to 30 characters ("Handles overview").
var mention = textlinks.Pattern{
	Match:  regexp.MustCompile(`@[\p{L}\p{N}_.·-]{3,30}`),
	Accept: func(before, _ string) bool { return !textlinks.EndsInWord(before) },
	Trim:   ".",
}

// links returns the addresses, hashtags and handles in a description.
func links(text string) []platforms.Link {
	addresses := textlinks.Addresses
	addresses.Shown = shorten
	patterns := []textlinks.Pattern{addresses, mention}
	if len(textlinks.Find(text, nil, textlinks.Hashtags)) <= maxHashtags {
		patterns = append(patterns, textlinks.Hashtags)
	}
	return textlinks.Find(text, nil, patterns...)
}

func shorten(address string) string {
	if runes := []rune(address); len(runes) > shownAddress+len("...") {
		return string(runes[:shownAddress]) + "..."
	}
	return ""
}
