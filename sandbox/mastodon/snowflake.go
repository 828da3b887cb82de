// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"strconv"

	"github.com/herald-social/herald/sandbox/state"
)

// serialBits is the number of low bits of an id that are not its time in milliseconds (lib/mastodon/snowflake.rb).
const serialBits = 16

// newID returns the id for a stamp.
func newID(at state.Stamp) string { return strconv.FormatInt(at.Milli<<serialBits+at.Serial, 10) }

// stampOf is the inverse of newID. It accepts any id, with or without a post.
func stampOf(id string) (state.Stamp, bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		return state.Stamp{}, false
	}
	return state.Stamp{Milli: n >> serialBits, Serial: n & (1<<serialBits - 1)}, true
}
