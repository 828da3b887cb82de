// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// movie returns a file with the header of a video of the given size and duration, padded with a pattern that reveals swapped parts.
func movie(brand string, width, height int, length time.Duration, size int) []byte {
	number := func(n int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	atom := func(name string, parts ...[]byte) []byte {
		content := bytes.Join(parts, nil)
		return bytes.Join([][]byte{number(int64(8 + len(content))), []byte(name), content}, nil)
	}
	nothing := func(n int) []byte { return make([]byte, n) }
	ms := number(length.Milliseconds())
	tables := atom("stbl", atom("stts", nothing(8)), atom("stsc", nothing(8)), atom("stsz", nothing(12)), atom("stco", nothing(8)))
	head := append(atom("ftyp", []byte(brand), nothing(4), []byte(brand)), atom("moov",
		atom("mvhd", nothing(12), number(1000), ms, nothing(80)),
		atom("trak",
			atom("tkhd", nothing(12), number(1), nothing(4), ms, nothing(52), number(int64(width)<<16), number(int64(height)<<16)),
			atom("mdia", atom("mdhd", nothing(12), number(1000), ms, nothing(4)), atom("minf", tables))))...)
	filling := make([]byte, max(0, size-len(head)-8))
	for i := range filling {
		filling[i] = byte(i >> 12)
	}
	return append(head, atom("mdat", filling)...)
}

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

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// mediaOf returns the control API's entries for received files.
func mediaOf(mimeType string, files ...[]byte) []any {
	out := []any{}
	for _, file := range files {
		out = append(out, map[string]any{"sha256": sumOf(file), "bytes": float64(len(file)), "mime_type": mimeType})
	}
	return out
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

// posted returns a platform's posts from the control API.
func (b *box) posted(platform string) []any {
	b.t.Helper()
	return b.control(http.MethodGet, "/posts?platform="+platform, "", http.StatusOK).list("data")
}

// field returns a field of one of the posts.
func field(posts []any, i int, names ...string) any {
	if i >= len(posts) {
		return nil
	}
	value := posts[i]
	for _, name := range names {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}
