// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"cmp"
	"slices"

	"github.com/herald-social/herald/platforms"
)

// foldAfter and foldLines are how much of a caption the feed shows before "… more". Instagram documents neither;
// publishing tools agree on them (Hootsuite and Buffer, guides to captions).
const foldAfter, foldLines = 125, 2

// links returns the hashtags and mentions of a caption. Instagram does not link addresses.
func links(text string) []platforms.Link {
	text = withoutAddresses(text)
	return slices.SortedFunc(slices.Values(slices.Concat(hashtagsIn(text), mentionsIn(text))),
		func(a, b platforms.Link) int { return cmp.Compare(a.Start, b.Start) })
}
