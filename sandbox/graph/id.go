// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

const (
	// idBase is the offset that makes ids 17 digits long.
	idBase = 10_000_000_000_000_000
	// serialBits is the number of low ID bits that are not time.
	serialBits = 16
)

// epoch is the origin of the times in IDs.
var epoch = time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)

// NewID returns a stamp's ID: a number of 17 digits, like Meta's current IDs.
func NewID(at state.Stamp) string {
	return strconv.FormatInt(idBase+(at.Milli-epoch.UnixMilli())<<serialBits+at.Serial, 10)
}

// shortcodes are the digits of the codes in public addresses, lowest value first.
const shortcodes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// Shortcode encodes an ID for a public address; "" if it is not a number.
func Shortcode(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return ""
	}
	var out []byte
	for ; n > 0; n /= 64 {
		out = append(out, shortcodes[n%64])
	}
	return "C" + string(out)
}

// IDOf is the inverse of Shortcode.
func IDOf(shortcode string) string {
	digits, found := strings.CutPrefix(shortcode, "C")
	if !found || digits == "" || len(digits) > 10 {
		return ""
	}
	var n uint64
	for i := len(digits) - 1; i >= 0; i-- {
		digit := strings.IndexByte(shortcodes, digits[i])
		if digit < 0 {
			return ""
		}
		n = n*64 + uint64(digit)
	}
	return strconv.FormatUint(n, 10)
}
