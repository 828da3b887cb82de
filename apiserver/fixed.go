// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"compress/gzip"
	"net/http"

	"github.com/herald-social/herald/apiserver/request"
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
		if request.TakesGzip(r) {
			header.Set("Content-Encoding", "gzip")
			body = p.compacted
		}
	}
	_, _ = w.Write(body) //nolint:gosec // G705: it is fixed; the client may have gone
}
