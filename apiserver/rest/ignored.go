// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// IgnoredHeader lists the fields and parameters of a request that had no effect.
const IgnoredHeader = "Herald-Ignored"

const (
	// maxIgnored limits the value of IgnoredHeader, in bytes. Proxies buffer a response's whole header in as little as
	// 4 KiB (nginx, proxy_buffer_size).
	maxIgnored = 1 << 10
	// manyIgnored limits the names collected, to the number that fits if each has two letters.
	manyIgnored = maxIgnored / 4
)

// ignoredInQuery adds the unknown query parameters, sorted because a query is a set.
func (c *call) ignoredInQuery(r *http.Request, of *operation) {
	if r.URL.RawQuery == "" {
		return
	}
	values, _ := url.ParseQuery(r.URL.RawQuery) // invalid parts have no names
	first := len(c.ignored)
	for name := range values {
		if !slices.Contains(of.words, name) && !slices.Contains(of.numbers, name) {
			c.ignored = append(c.ignored, name)
		}
	}
	slices.Sort(c.ignored[first:])
}

// ignoredInBody adds the fields that the operation did not read. Call it after the operation has parsed its body.
func (c *call) ignoredInBody() { c.ignored = append(c.ignored, c.body.Ignored(manyIgnored)...) }

func (c *call) setIgnoredHeader(w http.ResponseWriter) {
	if len(c.ignored) > 0 {
		w.Header().Set(IgnoredHeader, listed(c.ignored))
	}
}

// listed returns the value of IgnoredHeader: the first names that fit. Clients choose the names, which are returned in
// a header and to models, so every byte outside plain names and paths is percent-encoded.
func listed(names []string) string {
	var b strings.Builder
	for _, name := range names {
		escaped := escapedName(name)
		if b.Len()+len(", ")+len(escaped) > maxIgnored {
			break
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(escaped)
	}
	return b.String()
}

// escapedName returns the first maxEscaped bytes of a name, safe for headers and sentences.
func escapedName(name string) string {
	const (
		hex        = "0123456789ABCDEF"
		maxEscaped = 256
	)
	if name == "" {
		return `""`
	}
	var b strings.Builder
	for i := range min(len(name), maxEscaped) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_-.[]", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
