// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"regexp"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/textlinks"
)

// foldAfter and foldLines are how much of a caption the app shows before "more". TikTok documents neither; publishing
// tools agree on about 150 characters in two lines.
const foldAfter, foldLines = 150, 2

// tag matches a hashtag or a mention. TikTok recognizes those that are delimited by spaces or line breaks (Content
// Posting API, "Direct Post", title).
var tag = textlinks.Pattern{Match: regexp.MustCompile(`(?:^|\s)([#@][\p{L}\p{M}\p{N}_.]+)`), Trim: "."}

// links returns the hashtags and mentions of a caption. TikTok does not link addresses.
func links(text string) []platforms.Link { return textlinks.Find(text, nil, tag) }
