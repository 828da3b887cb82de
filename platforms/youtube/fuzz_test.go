// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/http"
	"testing"

	"github.com/herald-social/herald/internal/transport"
)

// FuzzStanding checks, for any session response, that no more bytes count as stored than the file has, and that a video
// has a valid id.
func FuzzStanding(f *testing.F) {
	f.Add(308, "bytes=0-262143", "", "", int64(1<<20))
	f.Add(308, "bytes=0-999999999999999999", "", "", int64(10))
	f.Add(308, "", "https://elsewhere.example", "", int64(10))
	f.Add(308, "0-3", "/upload?upload_id=1", "", int64(10))
	f.Add(308, "Bytes = 0-3, 4-9", "https://other.googleapis.com/?upload_id=1", "", int64(10))
	f.Add(308, "bytes=0-3,2-8,9-9", "?upload_id=2", "", int64(10))
	f.Add(200, "", "", `{"id":"dQw4w9WgXcQ"}`, int64(10))
	f.Add(200, "", "", `{"id":"../x"}`, int64(10))
	p := New(Config{}, nil)
	f.Fuzz(func(t *testing.T, status int, span, location, body string, size int64) {
		header := http.Header{}
		header.Set("Range", span)
		header.Set("Location", location)
		found, bad := p.parseSession(&transport.Response{Status: status, Header: header, Body: []byte(body)}, session{address: DefaultAPIURL + "/upload?upload_id=1"}, size)
		switch {
		case bad != nil:
			if bad.Problem == "" {
				t.Error("an error says nothing")
			}
		case found.state == done && !validID(found.video.ID.String()):
			t.Errorf("the video %q", found.video.ID)
		case found.state == open && (found.stored < 0 || found.stored > max(size, 0)):
			t.Errorf("%d of %d bytes are stored", found.stored, size)
		}
	})
}
