// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"strconv"

	"github.com/herald-social/herald/sandbox/state"
)

const (
	// epochMilli is the epoch of X's ids, as a Unix time in milliseconds.
	epochMilli = 1288834974657
	// serialBits is the number of low bits of an id that are not time.
	serialBits = 22
)

// newID returns the id for a stamp: its creation time is (id >> 22) + epochMilli.
func newID(at state.Stamp) string {
	return strconv.FormatInt((at.Milli-epochMilli)<<serialBits+at.Serial, 10)
}

// stampOf is the inverse of newID. It accepts any id, with or without a post.
func stampOf(id string) (state.Stamp, bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		return state.Stamp{}, false
	}
	return state.Stamp{Milli: n>>serialBits + epochMilli, Serial: n & (1<<serialBits - 1)}, true
}
