// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/test/must"
)

// inkProfile returns a printing profile with white paper and gray inks for every color (ICC.1, section 10.11:
// lut8Type). kind is the type of its table, which lacks the missing bytes at the end.
func inkProfile(space, kind string, missing int) []byte {
	const inks, seen, header = 4, 3, 128 + 4 + 12
	table := append([]byte(kind), 0, 0, 0, 0, inks, seen, 2, 0)
	for i := range 9 { // the unit matrix
		table = binary.BigEndian.AppendUint32(table, map[bool]uint32{true: 1 << 16}[i%4 == 0])
	}
	identity := make([]byte, 256)
	for i := range identity {
		identity[i] = byte(i)
	}
	table = append(table, bytes.Repeat(identity, inks)...)
	table = append(table, 255, 128, 128)
	table = append(table, bytes.Repeat([]byte{128, 128, 128}, 1<<inks-1)...)
	table = append(table, bytes.Repeat(identity, seen)...)
	table = table[:len(table)-missing]
	profile := make([]byte, header)
	binary.BigEndian.PutUint32(profile, uint32(header+len(table)))
	copy(profile[8:], "\x02\x40\x00\x00prtr"+space+"Lab ")
	copy(profile[36:], "acsp")
	copy(profile[68:], "\x00\x00\xf6\xd6\x00\x01\x00\x00\x00\x00\xd3\x2d")
	copy(profile[128:], "\x00\x00\x00\x01A2B0\x00\x00\x00\x90")
	binary.BigEndian.PutUint32(profile[140:], uint32(len(table)))
	return slices.Concat(profile, table)
}

// plainInks converts the sample, which stores brightness, colors and black, to a picture that stores the four inks.
func plainInks(t *testing.T, data []byte) []byte {
	t.Helper()
	const transform = 11
	at := bytes.Index(data, []byte("Adobe"))
	if at < 0 || data[at+transform] != 2 {
		t.Fatal("the sample is of another kind")
	}
	out := bytes.Clone(data)
	out[at+transform] = 0
	return out
}

// TestInks converts CMYK pictures using their profiles.
func TestInks(t *testing.T) {
	mixed := sample(t, "ycck.jpg")
	with := func(data, profile []byte) []byte {
		return segment(data, 0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), profile...))
	}
	gray, refuse := inkProfile("CMYK", "mft1", 0), "export it as sRGB"
	for name, tc := range map[string]struct {
		why      string
		data     []byte
		colorful bool
		says     string
	}{
		"without a profile":      {"browsers show it without a profile", mixed, true, ""},
		"plain, without":         {"browsers show CMYK without a profile like this", plainInks(t, mixed), true, ""},
		"with a profile":         {"all inks are gray in this profile", with(mixed, gray), false, ""},
		"plain, with a profile":  {"all inks are gray in this profile", with(plainInks(t, mixed), gray), false, ""},
		"with one for light":     {"an RGB profile does not describe inks", with(mixed, inkProfile("RGB ", "mft1", 0)), true, ""},
		"with an unknown table":  {"colours would change", with(mixed, inkProfile("CMYK", "mft9", 0)), false, refuse},
		"with a cut table":       {"colours would change", with(mixed, inkProfile("CMYK", "mft1", 200)), false, refuse},
		"with a table of a line": {"colours would change", with(mixed, inkProfile("CMYK", "mft1", 1850)), false, refuse},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, tc.data, jpegType), rendition.Target{MaxWidth: 64})
			if problem, ok := errors.AsType[*rendition.ConversionError](err); tc.says != "" {
				if !ok || !strings.Contains(problem.Message, tc.says) {
					t.Errorf("%s: %v", tc.why, err)
				}
				return
			}
			must.Succeed(t, err)
			picture, _, err := image.Decode(bytes.NewReader(files.files[r.Key].data))
			must.Succeed(t, err)
			if most := colorfulness(picture); (most > 100) != tc.colorful || !tc.colorful && most > 10 {
				t.Errorf("%s: channels differ by %d", tc.why, most)
			}
		})
	}
}

// colorfulness returns the largest difference between a pixel's channels.
func colorfulness(picture image.Image) (most int) {
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			c := color.NRGBAModel.Convert(picture.At(x, y)).(color.NRGBA)
			most = max(most, int(max(c.R, c.G, c.B))-int(min(c.R, c.G, c.B)))
		}
	}
	return most
}
