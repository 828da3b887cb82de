// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
)

// still returns an image.
func still(t *testing.T, format string, width, height int) []byte {
	t.Helper()
	var out bytes.Buffer
	picture := image.NewGray(image.Rect(0, 0, width, height))
	err := jpeg.Encode(&out, picture, nil)
	if format == "png" {
		out.Reset()
		err = png.Encode(&out, picture)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tryTransfer sends a body with headers to an address of the sandbox. Headers have the form "Name: value".
func (b *box) tryTransfer(method, address string, body io.Reader, headers ...string) (reply, error) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, address, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(content)}, err
}

func isXProblem(r reply, status int, in string) bool {
	return r.status == status && r.at("status") == float64(status) && strings.Contains(r.body, in)
}

// chunkOnYouTube sends a part of a file to a session.
func (b *box) chunkOnYouTube(session string, file []byte, first, end int) (reply, error) {
	b.t.Helper()
	return b.tryTransfer(http.MethodPut, session, bytes.NewReader(file[first:end]), "Content-Type: video/mp4",
		fmt.Sprintf("Content-Range: bytes %d-%d/%d", first, end-1, len(file)))
}
