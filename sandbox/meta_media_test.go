// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

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

// ServeHTTP serves a file, or 404.
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
	_, _ = w.Write(file) // the client may have disconnected
}

// jpegOf and pngOf return plain images of the given size.
func jpegOf(t *testing.T, width, height int) []byte {
	t.Helper()
	return still(t, "jpeg", width, height)
}

func pngOf(t *testing.T, width, height int) []byte { t.Helper(); return still(t, "png", width, height) }

// mp4Of returns a video of the given size and duration.
func mp4Of(brand string, width, height int, length time.Duration) []byte {
	return movie(brand, width, height, length, 0)
}

// file returns the control API's entry for a received file.
func file(data []byte, mimeType string) map[string]any {
	return map[string]any{"sha256": sumOf(data), "bytes": float64(len(data)), "mime_type": mimeType}
}

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
