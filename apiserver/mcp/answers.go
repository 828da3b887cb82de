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

// marks stand for an envelope in what the SDK writes: for its text, and for itself. The SDK
// would encode an envelope of a few KiB five times over, which is most of what a call takes
// of the processor (BenchmarkListPosts). Nobody but this process knows the marks.
type marks struct{ text, structured string }

func newMarks() marks { return marks{"text-" + rand.Text(), "structured-" + rand.Text()} }

// answers passes on what the SDK answers, with the envelope in the place of its marks. What
// the SDK words as plain text becomes an error of JSON-RPC: clients of this server read
// nothing but JSON.
type answers struct {
	http.ResponseWriter

	marks *marks
	call  *call
	// plain says that text is held back, which was to be answered with status.
	plain  bool
	text   []byte
	status int
}

// WriteHeader holds back the header of plain text.
func (a *answers) WriteHeader(status int) {
	if status >= http.StatusBadRequest && a.Header().Get("Content-Type") != "application/json" {
		a.plain, a.status = true, status
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write holds back plain text, and puts in the envelope. The SDK writes an answer at once.
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
	_, err := a.ResponseWriter.Write(out) //nolint:gosec // G705: it is JSON and says so, with nosniff
	return len(b), err                    //nolint:wrapcheck // it is the writer's own
}

// replaced is an answer with the envelope in it. One without the marks, such as an error of
// JSON-RPC, stays as it is.
func (m *marks) replaced(answer, envelope []byte) []byte {
	before, rest, found := bytes.Cut(answer, []byte(`"`+m.text+`"`))
	between, after, both := bytes.Cut(rest, []byte(`"`+m.structured+`"`))
	if !found || !both {
		return answer
	}
	// Quotes, of which an envelope has one for about six bytes, take one byte more as text.
	out := make([]byte, 0, len(answer)+2*len(envelope)+len(envelope)/3)
	out = wire.AppendText(append(out, before...), envelope)
	out = append(append(out, between...), envelope...)
	return append(out, after...)
}

// finish writes what was held back.
func (a *answers) finish() {
	if !a.plain {
		return
	}
	a.Header().Set("Content-Type", "application/json")
	a.Header().Del("Content-Length")
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(rpcError(codeInvalid, strings.TrimSpace(string(a.text)))) // the client may have gone
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answers) Unwrap() http.ResponseWriter { return a.ResponseWriter }
