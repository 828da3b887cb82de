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
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// shelf is a web server with files to fetch.
type shelf struct {
	url   string
	files map[string][]byte
	// asked gets the path of each request.
	asked chan string
	// hold, when there is one, keeps answers back until it is closed.
	hold chan struct{}
}

func newShelf(t *testing.T, files map[string][]byte) *shelf {
	t.Helper()
	s := &shelf{files: files, asked: make(chan string, 100)}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

// ServeHTTP answers a file, or that there is none.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked <- r.URL.Path
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-r.Context().Done():
			return
		}
	}
	file, ok := s.files[r.URL.Path[1:]]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(file) // the client may be gone
}

// jpegOf and pngOf are plain pictures of that size.
func jpegOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func pngOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// mp4Of is a film of that size and length that has no frames: what a look at its head can tell is there.
func mp4Of(brand string, width, height int, length time.Duration) []byte {
	number := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	box := func(kind string, parts ...[]byte) []byte {
		content := bytes.Join(parts, nil)
		return append(append(number(8+len(content)), kind...), content...)
	}
	zeros := func(n int) []byte { return make([]byte, n) }
	ms := number(int(length.Milliseconds()))
	return bytes.Join([][]byte{
		box("ftyp", []byte(brand), zeros(4), []byte(brand)),
		box("moov",
			box("mvhd", zeros(12), number(1000), ms, zeros(80)),
			box("trak",
				box("tkhd", zeros(12), number(1), zeros(4), ms, zeros(52), number(width<<16), number(height<<16)),
				box("mdia", box("mdhd", zeros(12), number(1000), ms, zeros(4)),
					box("minf", box("stbl", box("stts", zeros(8)), box("stsc", zeros(8)), box("stsz", zeros(12)), box("stco", zeros(8)))))),
		),
		box("mdat", zeros(64)),
	}, nil)
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// file is what the control API says of a file that arrived.
func file(data []byte, mimeType string) map[string]any {
	return map[string]any{"sha256": sha(data), "bytes": float64(len(data)), "mime_type": mimeType}
}

// settle asks for a container's status until the platform is done with it. A video is fetched while nobody waits.
func (b *box) settle(read func() string) string {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if status := read(); status != "IN_PROGRESS" {
			return status
		}
	}
	b.t.Fatal("the platform does not come to an end")
	return ""
}
