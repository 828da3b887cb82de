// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"image"
	"image/color"
	"testing"

	"github.com/herald-social/herald/internal/media/rendition"
)

// TestBlank checks the detection of a transparent picture that is invisible on white.
func TestBlank(t *testing.T) {
	logo := func(c color.Color, points int) []byte {
		picture := image.NewNRGBA(image.Rect(0, 0, 64, 64))
		for i := range points {
			picture.Set(i%64, i/64, c)
		}
		return asPNG(t, picture)
	}
	mist := noise(200, 200) // Its PNG is long.
	for at := 0; at < len(mist.Pix); at += 4 {
		mist.Pix[at+3] = mist.Pix[at]
		mist.Pix[at], mist.Pix[at+1], mist.Pix[at+2] = 255, 255, 255
	}
	jpegOnly := rendition.Target{Types: []string{jpegType}}
	for name, tc := range map[string]struct {
		why    string
		data   []byte
		target rendition.Target
		want   bool
	}{
		"white":         {"white on white", logo(color.White, 2000), jpegOnly, true},
		"nearly white":  {"nobody sees it", logo(color.Gray{245}, 2000), jpegOnly, true},
		"a few points":  {"nobody sees them", logo(color.Black, 4), jpegOnly, true},
		"nothing":       {"all is transparent", logo(color.White, 0), jpegOnly, true},
		"black":         {"black on white", logo(color.Black, 200), jpegOnly, false},
		"pale":          {"light gray on white can be seen", logo(color.Gray{220}, 2000), jpegOnly, false},
		"kept":          {"where transparency is, so is what is behind it", logo(color.White, 2000), both, false},
		"too long":      {"the PNG does not fit, and the JPEG is white", asPNG(t, mist), rendition.Target{Types: []string{jpegType, pngType}, MaxBytes: 8 << 10}, true},
		"white, opaque": {"a white sheet is what was sent", asPNG(t, flat(image.NewNRGBA(image.Rect(0, 0, 64, 64)), color.White)), jpegOnly, false},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			maker := rendition.NewRenderer(files)
			source := files.source(t, tc.data, pngType)
			r, err := maker.Make(t.Context(), source, tc.target)
			if err != nil || r.Blank != tc.want {
				t.Errorf("%s: got %+v, %v", tc.why, r, err)
			}
			if found, err := rendition.NewRenderer(files).Find(t.Context(), source, tc.target); err != nil || found != r {
				t.Errorf("another process finds %+v, %v", found, err)
			}
		})
	}
}
