// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"sync"

	g "maragu.dev/gomponents"
)

// packing marks a response to a browser that accepts gzip, which makes a month with many posts thirty times smaller.
// The length of a compressed response leaks information about its content (BREACH). That does not help an attacker
// here: no page has a lasting secret next to text that another site can choose. Forms do not contain a token, and a
// token that is shown once is in the response to a POST, which no other site can send.
type packing struct{ http.ResponseWriter }

// Unwrap gives http.ResponseController access to the connection.
func (p packing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// packers holds gzip writers for reuse. Each takes a few hundred KiB.
var packers = sync.Pool{New: func() any {
	packer, _ := gzip.NewWriterLevel(io.Discard, gzip.DefaultCompression) // the level is valid
	return packer
}}

// send renders a page into a response whose status has not been written yet.
func send(w http.ResponseWriter, status int, page g.Node) error {
	w.Header().Set("Vary", "Accept-Encoding")
	if _, packed := w.(packing); !packed {
		w.WriteHeader(status)
		return page.Render(w)
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	packer, _ := packers.Get().(*gzip.Writer)
	defer packers.Put(packer)
	packer.Reset(w)
	if err := page.Render(packer); err != nil {
		return err
	}
	return packer.Close()
}
