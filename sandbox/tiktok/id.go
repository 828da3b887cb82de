// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"strconv"

	"github.com/herald-social/herald/sandbox/state"
)

const (
	// secondBits and milliBits are how many low bits of an id are less than a second, and less than a millisecond. The seconds
	// above them give ids their 19 digits.
	secondBits = 32
	milliBits  = 22
)

// newID makes the id of a post: a number that fits into 64 bits, and into no floating point number.
func newID(at state.Stamp) string {
	second, milli := at.Milli/1000, at.Milli%1000
	return strconv.FormatInt(second<<secondBits|milli<<milliBits|at.Serial, 10)
}

// newPublishID returns what makes the publish id of a post that is made in that way.
func newPublishID(way string) func(state.Stamp) string {
	return func(at state.Stamp) string { return way + "~v2-1." + newID(at) }
}
