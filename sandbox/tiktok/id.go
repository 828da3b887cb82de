// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"strconv"

	"github.com/herald-social/herald/sandbox/state"
)

const (
	// secondBits and milliBits are the numbers of low bits of an id that hold the fraction of a second and of a
	// millisecond. The seconds above them make ids 19 digits long.
	secondBits = 32
	milliBits  = 22
)

// newID returns the id of a post: a number that fits into 64 bits but not into a float64.
func newID(at state.Stamp) string {
	second, milli := at.Milli/1000, at.Milli%1000
	return strconv.FormatInt(second<<secondBits|milli<<milliBits|at.Serial, 10)
}

// newPublishID returns the generator of publish ids for the given way of posting.
func newPublishID(way string) func(state.Stamp) string {
	return func(at state.Stamp) string { return way + "~v2-1." + newID(at) }
}
