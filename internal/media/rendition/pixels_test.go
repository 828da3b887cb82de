// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"image"
	"image/color"
	"testing"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/test/must"
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
		"nearly white":  {"the logo is invisible", logo(color.Gray{245}, 2000), jpegOnly, true},
		"a few points":  {"the points are invisible", logo(color.Black, 4), jpegOnly, true},
		"invisible":     {"all pixels are transparent", logo(color.White, 0), jpegOnly, true},
		"black":         {"black on white", logo(color.Black, 200), jpegOnly, false},
		"pale":          {"light gray on white can be seen", logo(color.Gray{220}, 2000), jpegOnly, false},
		"kept":          {"transparency is supported", logo(color.White, 2000), both, false},
		"too long":      {"the PNG does not fit, and the JPEG is white", asPNG(t, mist), rendition.Target{Types: []string{jpegType, pngType}, MaxBytes: 8 << 10}, true},
		"white, opaque": {"an opaque white picture is intended", asPNG(t, flat(image.NewNRGBA(image.Rect(0, 0, 64, 64)), color.White)), jpegOnly, false},
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

// pngWithProfile puts a color profile after the header of a PNG.
func pngWithProfile(t *testing.T, data, profile []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(profile); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, w.Close())
	return withChunk(data, "iCCP", append([]byte("screen\x00\x00"), packed.Bytes()...))
}

// A rendition consists of pixels: it has none of the file's other metadata, such as the location, even if it has a
// color profile.
func TestMetadataIsRemoved(t *testing.T) {
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
		"jpeg":                {"all JPEG segments with metadata", jpegType, placed},
		"jpeg with a profile": {"only the profile is copied", jpegType, profiled},
		"png":                 {"all PNG chunks with metadata", pngType, append(bytes.Clone(glass), place...)},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, tc.data, tc.mimeType), rendition.Target{MaxWidth: 32})
			must.Succeed(t, err)
			data := files.files[r.Key].data
			if !bytes.Contains(tc.data, []byte(place)) || bytes.Contains(data, []byte(place)) || bytes.Contains(data, []byte("Exif")) {
				t.Errorf("%s: the place is in the rendition: %q", tc.reason, data)
			}
		})
	}
}

// TestDamagedPixels checks that the intact part of a damaged JPEG is converted. Viewers show it, and so do platforms
// that accept the original.
func TestDamagedPixels(t *testing.T) {
	// broken returns data with an invalid code at the given distance from its end.
	broken := func(data []byte, fromEnd int) []byte {
		out := bytes.Clone(data)
		copy(out[len(out)-fromEnd:], "\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00")
		return out
	}
	for name, tc := range map[string]struct {
		why  string
		data []byte
		want bool
	}{
		"in the middle":     {"the upper part is shown", broken(asJPEG(t, quarters(640, 480)), 3000), true},
		"between restarts":  {"the rows below exist, too", broken(sample(t, "restarts.jpg"), 400), true},
		"cut":               {"the upper part is shown", sample(t, "restarts.jpg")[:1300], true},
		"of a late scan":    {"the picture is less sharp", broken(sample(t, "progressive.jpg"), 40), true},
		"of the first scan": {"a partial first scan shows no picture", broken(sample(t, "progressive.jpg"), 1200), false},
		"of all colours":    {"the colours are stored one after another", sample(t, "channels.jpg")[:1000], false},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, tc.data, jpegType), rendition.Target{MaxWidth: 64})
			if problem, ok := errors.AsType[*rendition.ConversionError](err); !tc.want && !ok {
				t.Errorf("%s: created %+v, %v", tc.why, r, problem)
			}
			if tc.want && (err != nil || r.Width != 64) {
				t.Errorf("%s: created %+v, %v", tc.why, r, err)
			}
		})
	}
}
