// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"testing"

	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/test/must"
)

// decoded decodes a JPEG.
func decoded(t *testing.T, data []byte) image.Image {
	t.Helper()
	picture, err := jpeg.Decode(bytes.NewReader(data))
	must.Succeed(t, err)
	return picture
}

// sameRows returns the number of consecutive equal rows in two pictures, from the top or else from the bottom.
func sameRows(a, b image.Image, fromTop bool) (rows int) {
	bounds := a.Bounds()
	for ; rows < bounds.Dy(); rows++ {
		y := rows
		if !fromTop {
			y = bounds.Dy() - 1 - rows
		}
		for x := range bounds.Dx() {
			if a.At(x, y) != b.At(x, y) {
				return rows
			}
		}
	}
	return rows
}

// TestRepairKeepsIntactParts checks that all intact parts of a damaged JPEG are shown.
func TestRepairKeepsIntactParts(t *testing.T) {
	// broken returns data with an invalid code in the middle of the pixels.
	broken := func(data []byte) []byte {
		out := bytes.Clone(data)
		at := bytes.Index(data, []byte("\xff\xda"))
		at += (len(data) - at) / 2
		copy(out[at:], "\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00")
		return out
	}
	const row = 16
	for name, tc := range map[string]struct {
		why         string
		whole, data []byte
		// top and bottom are the minimum numbers of equal rows.
		top, bottom int
	}{
		"whole":                {"an intact file needs no repair", file(t, "picture.jpg"), file(t, "picture.jpg"), 48, 48},
		"whole, with restarts": {"an intact file needs no repair", file(t, "restarts.jpg"), file(t, "restarts.jpg"), 44, 44},
		"cut":                  {"the first row exists", file(t, "restarts.jpg"), file(t, "restarts.jpg")[:1250], row, 0},
		"without its end":      {"all rows exist", file(t, "restarts.jpg"), file(t, "restarts.jpg")[:len(file(t, "restarts.jpg"))-2], 44, 44},
		"a hole":               {"the part after the next restart is complete", file(t, "restarts.jpg"), broken(file(t, "restarts.jpg")), 0, 44 - row},
		"a lost mark": {
			"the next restart marker has a number",
			file(t, "restarts.jpg"), bytes.Replace(file(t, "restarts.jpg"), []byte("\xff\xd0"), []byte("\xff\x00"), 1), row / 2, row / 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mended := probe.Repair(tc.data)
			if mended == nil {
				t.Fatalf("%s: the file cannot be repaired", tc.why)
			}
			want, got := decoded(t, tc.whole), decoded(t, mended)
			if top, bottom := sameRows(want, got, true), sameRows(want, got, false); top < tc.top || bottom < tc.bottom {
				t.Errorf("%s: %d rows at the top and %d at the bottom are the same", tc.why, top, bottom)
			}
		})
	}
	for _, name := range []string{"progressive.jpg", "channels.jpg", "arithmetic.jpg", "picture.png"} {
		if mended := probe.Repair(file(t, name)); mended != nil {
			t.Errorf("%s has become %d bytes", name, len(mended))
		}
	}
}

// TestShorten removes the undecodable scans of a progressive picture.
func TestShorten(t *testing.T) {
	whole := file(t, "progressive.jpg")
	short := probe.Shorten(whole, len(whole)-100)
	if short == nil || len(short) >= len(whole)-100 {
		t.Fatalf("%d of %d bytes remain", len(short), len(whole))
	}
	if got := decoded(t, short).Bounds(); got != decoded(t, whole).Bounds() {
		t.Errorf("the picture has %v", got)
	}
	if short := probe.Shorten(whole, 300); short != nil {
		t.Errorf("%d bytes of the first scan remain", len(short))
	}
}

// FuzzRepair checks that repairing a decodable JPEG does not change its picture.
func FuzzRepair(f *testing.F) {
	for _, name := range []string{"picture.jpg", "restarts.jpg", "channels.jpg", "progressive.jpg"} {
		f.Add(file(f, name), 500)
	}
	f.Fuzz(func(t *testing.T, data []byte, decodable int) {
		if decodable >= 0 && decodable <= len(data) {
			_ = probe.Shorten(data, decodable)
		}
		// The caller has checked the size by the header.
		if config, err := jpeg.DecodeConfig(bytes.NewReader(data)); err != nil || config.Width*config.Height > 1<<16 {
			return
		}
		mended := probe.Repair(data)
		want, err := jpeg.Decode(bytes.NewReader(data))
		if mended == nil || err != nil {
			return
		}
		if got, err := jpeg.Decode(bytes.NewReader(mended)); err != nil || got.Bounds() != want.Bounds() {
			t.Errorf("mended: %v", err)
		}
	})
}
