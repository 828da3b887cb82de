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
	return still(t, "jpeg", width, height)
}

func pngOf(t *testing.T, width, height int) []byte { t.Helper(); return still(t, "png", width, height) }

// mp4Of is a film of that size and length.
func mp4Of(brand string, width, height int, length time.Duration) []byte {
	return movie(brand, width, height, length, 0)
}

// file is what the control API says of a file that arrived.
func file(data []byte, mimeType string) map[string]any {
	return map[string]any{"sha256": sumOf(data), "bytes": float64(len(data)), "mime_type": mimeType}
}

// settle asks for a container's status until the platform is done with it. A video is fetched in the background.
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
