// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/herald-social/herald/internal/media/probe"
)

func TestReadHeader(t *testing.T) {
	const pixels = 64 * 48
	jpeg, png, webp := file(t, "picture.jpg"), file(t, "picture.png"), file(t, "picture.webp")
	frame := bytes.Index(jpeg, []byte{0xff, 0xc0, 0, 17, 8})
	if frame < 0 {
		t.Fatal("the sample has no frame of three colours")
	}
	jpeg = with(with(jpeg, frame+14, 0x11), frame+17, 0x11)
	sparse, full := with(jpeg, frame+11, 0x22), with(jpeg, frame+11, 0x11)
	for name, tc := range map[string]struct {
		why         string
		data        []byte
		mimeType    string
		orientation int
		bytes       int64
	}{
		"jpeg":                 {"colours are stored for every fourth point", sparse, jpegType, 1, pixels * 3 / 2},
		"jpeg of full colours": {"colours are stored for every point", full, jpegType, 1, pixels * 3},
		"progressive jpeg":     {"its coefficients are in memory until the end", with(sparse, frame+1, 0xc2), jpegType, 1, pixels * 15 / 2},
		"jpeg of other colours": {
			"CMYK files are converted into a copy",
			join(full[:2], "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00", full[2:]), jpegType, 1, pixels * 7,
		},
		"turned jpeg":    {"each orientation is reported", turnedJPEG(sparse, 3), jpegType, 3, pixels * 3 / 2},
		"png":            {"four bytes a point", png, pngType, 1, pixels * 4},
		"webp":           {"colours are stored for every fourth point", webp, webpType, 1, pixels*3/2 + int64(len(webp))},
		"extended webp":  {"its parts may need more memory", riff("VP8X\x0a\x00\x00\x00", "\x00\x00\x00\x00\x3f\x00\x00\x2f\x00\x00", webp[12:]), webpType, 1, pixels*10 + int64(len(webp)) + 18},
		"no orientation": {"8 is the largest orientation", turnedJPEG(sparse, 9), jpegType, 1, pixels * 3 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := probe.ReadHeader(bytes.NewReader(tc.data), int64(len(tc.data)), tc.mimeType)
			if err != nil || h.Width != 64 || h.Height != 48 || h.Orientation != tc.orientation || h.DecodedBytes != tc.bytes || h.Unconvertible != "" {
				t.Errorf("%s: got %+v, %v; want orientation %d, %d bytes", tc.why, h, err, tc.orientation, tc.bytes)
			}
		})
	}
	var problem *probe.InvalidFileError
	if _, err := probe.ReadHeader(bytes.NewReader(jpeg[:20]), 20, jpegType); !errors.As(err, &problem) {
		t.Errorf("a cut header: %v", err)
	}
	boom := errors.New("boom")
	if _, err := probe.ReadHeader(broken{boom}, 700, jpegType); !errors.Is(err, boom) || errors.As(err, &problem) {
		t.Errorf("a header that cannot be read: %v", err)
	}
}

type broken struct{ err error }

func (b broken) ReadAt([]byte, int64) (int, error) { return 0, b.err }
