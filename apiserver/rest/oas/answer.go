// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oas

import (
	"net/http"

	"github.com/go-faster/jx"
)

// maxKept is how large the buffer of an encoder may be that is used again, in
// bytes: about four pages of a hundred posts. One long answer must not be paid
// for as long as the process lives.
const maxKept = 128 << 10

// writeAnswer writes what an encoder of jx's pool holds and gives it back. The
// generator would make an encoder for each answer, whose buffer grows step by
// step: half of all that a list of posts took from the heap. See generate.go.
func writeAnswer(e *jx.Encoder, w http.ResponseWriter) (int, error) {
	n, err := w.Write(e.Bytes())
	if cap(e.Bytes()) <= maxKept {
		jx.PutEncoder(e)
	}
	return n, err
}
