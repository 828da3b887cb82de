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

// packing is an answer to a browser that takes gzip. A month of many posts is thirty times smaller so. That the length of an answer
// tells of its content (BREACH) helps no attacker here: no page has a secret that stays the same beside text that another site can
// choose, since forms carry no token and what is shown once is the answer to a POST, which no other site can send.
type packing struct{ http.ResponseWriter }

// Unwrap lets http.ResponseController reach the connection.
func (p packing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// packers are kept: each takes some hundred KiB.
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
