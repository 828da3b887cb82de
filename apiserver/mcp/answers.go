// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"

	"github.com/herald-social/herald/apiserver/wire"
)

// marks are the placeholders for an envelope in the SDK's output: one for its text content, one for its structured
// content. Without them the SDK would encode an envelope of a few KiB five times, which is most of a call's CPU time
// (BenchmarkListPosts). The marks are random and never leave this process.
type marks struct{ text, structured string }

func newMarks() marks { return marks{"text-" + rand.Text(), "structured-" + rand.Text()} }

// answers is the ResponseWriter that the SDK writes to. It replaces the marks with the envelope. Clients of this server
// parse only JSON, so it also converts the SDK's plain-text errors to JSON-RPC errors.
type answers struct {
	http.ResponseWriter

	marks *marks
	call  *call
	// plain is set while a plain-text error is buffered in text; status is its status code.
	plain  bool
	text   []byte
	status int
}

// WriteHeader delays a plain-text error's header until finish.
func (a *answers) WriteHeader(status int) {
	if status >= http.StatusBadRequest && a.Header().Get("Content-Type") != "application/json" {
		a.plain, a.status = true, status
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write buffers plain text and replaces the marks in JSON. The SDK writes a response with a single call.
func (a *answers) Write(b []byte) (int, error) {
	if a.plain {
		a.text = append(a.text, b...)
		return len(b), nil
	}
	out := b
	if a.call.envelope != nil {
		out = a.marks.replaced(b, a.call.envelope)
		a.Header().Set("Content-Length", strconv.Itoa(len(out)))
	}
	_, err := a.ResponseWriter.Write(out) //nolint:gosec // G705: the response is application/json, with nosniff
	return len(b), err                    //nolint:wrapcheck // the writer's own error
}

// replaced returns the response with the envelope in place of the marks, if it has any.
func (m *marks) replaced(answer, envelope []byte) []byte {
	before, rest, found := bytes.Cut(answer, []byte(`"`+m.text+`"`))
	between, after, both := bytes.Cut(rest, []byte(`"`+m.structured+`"`))
	if !found || !both {
		return answer
	}
	// Escaping a quote takes one more byte in the text; about one byte in six of an envelope is a quote.
	out := make([]byte, 0, len(answer)+2*len(envelope)+len(envelope)/3)
	out = wire.AppendText(append(out, before...), envelope)
	out = append(append(out, between...), envelope...)
	return append(out, after...)
}

// finish writes the buffered plain-text error as a JSON-RPC error.
func (a *answers) finish() {
	if !a.plain {
		return
	}
	a.Header().Set("Content-Type", "application/json")
	a.Header().Del("Content-Length")
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(rpcError(codeInvalid, strings.TrimSpace(string(a.text)))) // ignore: the client may be gone
}

func (a *answers) Unwrap() http.ResponseWriter { return a.ResponseWriter }
