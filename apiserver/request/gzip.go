// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net/http"
	"strconv"
	"strings"
)

// TakesGzip reports whether a client takes gzip (RFC 9110, section 12.5.3). One that takes anything without naming gzip gets
// what is not compressed, which is allowed.
func TakesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, value, given := strings.Cut(weight, "=")
		quality, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return !given || err == nil && quality > 0
	}
	return false
}
