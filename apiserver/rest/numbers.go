// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxDigits is how many digits always fit into an int64.
const maxDigits = 18

// clamped are the numbers of a query that are moved into their bounds.
var clamped = []string{"page", "limit"}

// withinInt moves whole numbers of a query that no int can hold to the nearest
// that one can. The decoder would refuse them, yet the greatest number is as
// good as any other that is beyond its bound. What cannot be read is left for
// the decoder to refuse.
func withinInt(r *http.Request) *http.Request {
	if len(r.URL.RawQuery) <= maxDigits {
		return r
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return r
	}
	changed := false
	for _, name := range clamped {
		given := values[name]
		if len(given) != 1 {
			continue
		}
		// Atoi finds a number too large before it finds that it is none.
		if nearest, err := strconv.Atoi(given[0]); errors.Is(err, strconv.ErrRange) && strings.Trim(given[0][1:], "0123456789") == "" {
			given[0] = strconv.Itoa(nearest)
			changed = true
		}
	}
	if !changed {
		return r
	}
	out := *r
	address := *r.URL
	address.RawQuery = values.Encode()
	out.URL = &address
	return &out
}
