// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// AcceptsGzip reports whether a client accepts gzip (RFC 9110, section 12.5.3). A client that accepts any encoding
// without naming gzip receives the uncompressed form, which is allowed.
func AcceptsGzip(r *http.Request) bool {
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

// Fixed is a constant response that is compressed only once.
type Fixed struct {
	plain []byte
	// compacted is the compressed body; nil if it is not smaller.
	compacted []byte
}

// NewFixed returns a response with the given body.
func NewFixed(body []byte) Fixed {
	f := Fixed{plain: body}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = writer.Write(body)
	}
	if err == nil {
		err = writer.Close()
	}
	if err == nil && out.Len() < len(body) {
		f.compacted = out.Bytes()
	}
	return f
}

// PackedSize returns the size of the body for clients that accept gzip.
func (f Fixed) PackedSize() int {
	if f.compacted == nil {
		return len(f.plain)
	}
	return len(f.compacted)
}

// Write writes the response, compressed if the client accepts it. Set the headers first.
func (f Fixed) Write(w http.ResponseWriter, r *http.Request) {
	body := f.plain
	if f.compacted != nil {
		w.Header().Set("Vary", "Accept-Encoding")
		if AcceptsGzip(r) {
			w.Header().Set("Content-Encoding", "gzip")
			body = f.compacted
		}
	}
	_, _ = w.Write(body) // ignore: the client may be gone
}
