// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"compress/zlib"
	"testing"
)

// pngWithProfile puts a colour profile after the header of a PNG.
func pngWithProfile(t *testing.T, data, profile []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(profile); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return withChunk(data, "iCCP", append([]byte("screen\x00\x00"), packed.Bytes()...))
}
