// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"strconv"

	"github.com/herald-social/herald/sandbox/state"
)

const (
	// epochMilli is the Unix time in milliseconds from which X's ids count.
	epochMilli = 1288834974657
	// serialBits is how many low bits of an id are not time.
	serialBits = 22
)

// newID makes the id of a post created at that stamp: its creation time is (id >> 22) + epochMilli.
func newID(at state.Stamp) string {
	return strconv.FormatInt((at.Milli-epochMilli)<<serialBits+at.Serial, 10)
}

// stampOf is the inverse of newID. It takes any id, whether or not there is a post with it.
func stampOf(id string) (state.Stamp, bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		return state.Stamp{}, false
	}
	return state.Stamp{Milli: n>>serialBits + epochMilli, Serial: n & (1<<serialBits - 1)}, true
}
