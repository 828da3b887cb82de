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

// packing is an answer to a browser that takes gzip. It makes a month of many posts thirty times smaller. The length of an answer
// tells something of its content (BREACH), which does not help an attacker here: no page has a lasting secret next to text that another
// site can choose. Forms carry no token, and a token that is shown once is the answer to a POST, which no other site can send.
type packing struct{ http.ResponseWriter }

// Unwrap lets http.ResponseController reach the connection.
func (p packing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// packers are reused, since each takes some hundred KiB.
var packers = sync.Pool{New: func() any {
	packer, _ := gzip.NewWriterLevel(io.Discard, gzip.DefaultCompression) // the level is one
	return packer
}}

// send renders a page into an answer whose status was not written yet.
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
