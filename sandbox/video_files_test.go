// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
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

// transfer sends a body with headers to an address of the sandbox. Headers have the form "Name: value".
func (b *box) transfer(method, address string, body io.Reader, headers ...string) reply {
	b.t.Helper()
	r, err := b.do(b.request(b.t.Context(), method, address, body, headers...))
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, address, err)
	}
	return r
}

// disconnect sends a request and disconnects while it waits for a fault's delay.
func (b *box) disconnect(method, address string, body []byte, headers ...string) {
	b.t.Helper()
	ctx, leave := context.WithCancel(b.t.Context())
	req, gone := b.request(ctx, method, address, bytes.NewReader(body), headers...), make(chan error, 1)
	go func() {
		_, err := b.do(req)
		gone <- err
	}()
	<-b.clock.timers
	leave()
	if err := <-gone; err == nil {
		b.t.Fatal("the client got a response during the delay")
	}
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

// shelf is a web server with files to fetch.
type shelf struct {
	url   string
	files map[string][]byte
	// asked receives the path of each request.
	asked chan string
	// hold, if set, delays responses until it is closed.
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

// ServeHTTP serves a file, a redirect from /moved to /a, or 404.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked <- r.URL.Path
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-r.Context().Done():
			return
		}
	}
	if r.URL.Path == "/moved" {
		http.Redirect(w, r, "/a", http.StatusFound)
		return
	}
	file, ok := s.files[r.URL.Path[1:]]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(file) // the client may have disconnected
}

// jpegOf and pngOf return plain images of the given size.
func jpegOf(t *testing.T, width, height int) []byte {
	t.Helper()
	return xPicture(t, "jpeg", width, height, 0)
}

func pngOf(t *testing.T, width, height int) []byte {
	t.Helper()
	return xPicture(t, "png", width, height, 0)
}

// mp4Of returns a video of the given size and duration.
func mp4Of(brand string, width, height int, length time.Duration) []byte {
	return movie(brand, width, height, length, 0)
}

// file returns the control API's entry for a received file.
func file(data []byte, mimeType string) any { return mediaOf(mimeType, data)[0] }

// settle polls a container's status until its processing ends. A video is fetched in the background.
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

// longer pads a file without changing the image.
func longer(file []byte, size int) []byte { return append(file, make([]byte, size-len(file))...) }
