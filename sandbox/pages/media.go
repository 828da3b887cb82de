// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

// mediaView is the view of a post's file.
type mediaView struct {
	Path          string
	Video         bool
	AltText       string
	Width, Height int
}

func (s *Site) mediaOf(p state.Post) []mediaView {
	out := make([]mediaView, 0, len(p.Media))
	for _, m := range p.Media {
		blob, _ := s.blobs.Get(m.SHA256)
		out = append(out, mediaView{
			Path: "/_media/" + m.SHA256, Video: strings.HasPrefix(m.MIMEType, "video/"), AltText: m.AltText,
			Width: blob.Width, Height: blob.Height,
		})
	}
	return out
}

// media serves the file with a hash as its detected type, if pages show this type.
func (s *Site) media(w http.ResponseWriter, r *http.Request) {
	hash := r.PathValue("hash")
	blob, known := s.blobs.Get(hash)
	shown := strings.HasPrefix(blob.MIMEType, "image/") && blob.MIMEType != "image/svg+xml" || strings.HasPrefix(blob.MIMEType, "video/")
	file, err := s.blobs.Open(hash)
	if err != nil || !known || !shown {
		Message(w, http.StatusNotFound, "Nothing here", "There is no such file in the sandbox.")
		return
	}
	defer file.Close() //nolint:errcheck // the file was only read
	secureHeaders(w.Header())
	w.Header().Set("Content-Type", blob.MIMEType)
	w.Header().Set("Cache-Control", "max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, file)
}
