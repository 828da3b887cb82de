// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/textlinks"
)

// foldAfter and foldLines are how much of a post the feed shows before "See more". Facebook documents neither;
// publishing tools agree on about 477 characters or five lines.
const foldAfter, foldLines = 477, 5

// links returns the addresses and hashtags in text. A name with an @ is not a link, because mentions require an id
// and another permission.
func links(text string) []platforms.Link {
	return textlinks.Find(text, nil, textlinks.Addresses, textlinks.Hashtags)
}
