// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"image"
	"testing"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/test/must"
)

// A rendition consists of pixels: it has none of the file's other metadata, such as the location, even if it has a
// colour profile.
func TestNoMetadataStays(t *testing.T) {
	const place = "47.2 N 8.5 E"
	profile := make([]byte, 200)
	copy(profile[16:], "RGB ")
	plain := asJPEG(t, quarters(64, 64))
	placed := turned(plain, 1)
	for marker, content := range map[byte]string{0xe1: "http://ns.adobe.com/xap/1.0/\x00", 0xed: "Photoshop 3.0\x00", 0xe6: "GoPro\x00", 0xfe: "", 0xef: ""} {
		placed = segment(placed, marker, []byte(content+place))
	}
	placed = append(placed, place...)
	profiled := segment(placed, 0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), profile...))
	glass := asPNG(t, image.NewNRGBA(image.Rect(0, 0, 64, 64)))
	for name, tc := range map[string]struct {
		reason, mimeType string
		data             []byte
	}{
		"jpeg":                {"all parts of a JPEG that hold metadata", jpegType, placed},
		"jpeg with a profile": {"the profile alone is carried over", jpegType, profiled},
		"png":                 {"the same of a PNG, which stays one", pngType, append(bytes.Clone(glass), place...)},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, tc.data, tc.mimeType), rendition.Target{MaxWidth: 32})
			must.Succeed(t, err)
			made := files.files[r.Key].data
			if !bytes.Contains(tc.data, []byte(place)) || bytes.Contains(made, []byte(place)) || bytes.Contains(made, []byte("Exif")) {
				t.Errorf("%s: the place is in the rendition: %q", tc.reason, made)
			}
		})
	}
}
