// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// fixed is an answer that never changes. It is compressed once, here.
func fixed(operation, contentType string, body []byte, policy string) page {
	p := page{operation: operation, contentType: contentType, body: body, policy: policy}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = writer.Write(body)
	}
	if err == nil {
		err = writer.Close()
	}
	if err == nil && out.Len() < len(body) {
		p.compacted = out.Bytes()
	}
	return p
}

func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	header, body := w.Header(), p.body
	header.Set("Content-Type", p.contentType)
	header.Set("Content-Security-Policy", p.policy)
	header.Set("Referrer-Policy", "no-referrer")
	if p.compacted != nil {
		header.Set("Vary", "Accept-Encoding")
		if takesGzip(r.Header.Values("Accept-Encoding")) {
			header.Set("Content-Encoding", "gzip")
			body = p.compacted
		}
	}
	_, _ = w.Write(body) //nolint:gosec // G705: it is fixed; the client may have gone
}

// takesGzip reports whether a client takes gzip (RFC 9110, section 12.5.3). One that takes anything without naming gzip gets
// what is not compressed, which is allowed.
func takesGzip(accepted []string) bool {
	for part := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
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
