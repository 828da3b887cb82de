// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"fmt"
	"regexp"
)

var (
	// hashtags are words that begin with #, wherever they stand.
	hashtags = regexp.MustCompile(`[#＃][\p{L}\p{M}\p{N}_]+`)
	// mentions are names of accounts that begin with @ and do not stand in the
	// middle of a word, as an address of mail would have it.
	mentions = regexp.MustCompile(`(?:^|[^\p{L}\p{N}_.@])@[A-Za-z0-9_.]+`)
)

// captionProblem names what Instagram refuses besides length.
func captionProblem(text string) string {
	if n := len(hashtags.FindAllStringIndex(text, -1)); n > maxHashtags {
		return fmt.Sprintf("has %d hashtags; Instagram takes at most %d; leave some out", n, maxHashtags)
	}
	if n := len(mentions.FindAllStringIndex(text, -1)); n > maxMentions {
		return fmt.Sprintf("mentions %d accounts; Instagram takes at most %d; leave some out", n, maxMentions)
	}
	return ""
}
