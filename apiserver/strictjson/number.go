// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"strconv"
	"strings"
)

// maxExponent limits exponents before they are added. No body has that many digits.
const maxExponent = 1 << 40

// wholeOf parses a JSON number as an integer, in every notation of RFC 8259, section 6: 1000, 1000.0 and 1e3 are equal,
// and serializers in languages with a single number type write any of them. A number beyond int64 becomes the nearest
// int64, and fits is false. The cost depends only on the digits, not on the exponent.
func wholeOf(raw []byte) (n int64, whole, fits bool) {
	text, negative := strings.CutPrefix(string(raw), "-")
	mantissa, power := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		power, _ = strconv.Atoi(text[i+1:]) // out of range: the nearest value
		power = min(max(power, -maxExponent), maxExponent)
	}
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(before+after, "0")
	power -= len(after)
	significant := strings.TrimRight(digits, "0")
	power += len(digits) - len(significant)
	switch {
	case significant == "":
		return 0, true, true
	case power < 0:
		return 0, false, false
	}
	const most = 20 // digits: one more than the largest int64
	sign := ""
	if negative {
		sign = "-"
	}
	n, err := strconv.ParseInt(sign+significant+strings.Repeat("0", min(power, most)), 10, 64)
	return n, true, err == nil
}

// Integer returns an integer, in any notation.
func (v Value) Integer(least int64) int64 {
	raw, ok := v.read(number, "an integer")
	if !ok {
		return 0
	}
	n, whole, fits := wholeOf(raw)
	switch {
	case !whole, !fits && n > 0:
		v.Refuse("must be a whole number below 2^63")
	case n < least:
		v.Refuse("must be at least " + strconv.FormatInt(least, 10))
	default:
		return n
	}
	return 0
}

// Nearest returns an integer, in any notation, for callers that check the bounds themselves: a number beyond int64
// becomes the nearest int64.
func (v Value) Nearest() int64 {
	raw, ok := v.read(number, "a whole number")
	if !ok {
		return 0
	}
	n, whole, _ := wholeOf(raw)
	if !whole {
		v.Refuse("must be a whole number")
	}
	return n
}
