// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// IgnoredHeader names the fields and parameters of a request that had no effect.
const IgnoredHeader = "Herald-Ignored"

const (
	// maxIgnored bounds the value of IgnoredHeader in bytes. Proxies hold the whole header of an answer in as little as 4 KiB
	// (nginx, proxy_buffer_size).
	maxIgnored = 1 << 10
	// manyIgnored is how many names are looked for: as many as fit if each has two letters.
	manyIgnored = maxIgnored / 4
)

// ignoredInQuery notes the parameters that the operation does not have, sorted: a query is a set.
func (c *call) ignoredInQuery(r *http.Request, of *operation) {
	if r.URL.RawQuery == "" {
		return
	}
	values, _ := url.ParseQuery(r.URL.RawQuery) // what it cannot read is no name
	first := len(c.ignored)
	for name := range values {
		if !slices.Contains(of.words, name) && !slices.Contains(of.numbers, name) {
			c.ignored = append(c.ignored, name)
		}
	}
	slices.Sort(c.ignored[first:])
}

// ignoredInBody notes the fields that an operation did not ask for, once it has read its body.
func (c *call) ignoredInBody() { c.ignored = append(c.ignored, c.body.Ignored(manyIgnored)...) }

// setIgnoredHeader sets the header of an answer.
func (c *call) setIgnoredHeader(w http.ResponseWriter) {
	if len(c.ignored) > 0 {
		w.Header().Set(IgnoredHeader, listed(c.ignored))
	}
}

// listed is what IgnoredHeader says of names: as many of the first as have room. Clients chose the names, and they are echoed
// into a header and to models, so every byte is escaped, as in an address, that is no part of a plain name or path.
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

// escapedName is a name, of its first maxEscaped bytes, in characters that mean nothing in a header or in a sentence.
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
