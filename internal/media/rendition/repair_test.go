// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/herald-social/herald/internal/media/rendition"
)

// TestDamagedPixels checks that the intact part of a JPEG that viewers show is converted: the platforms that accept the
// original show it, too.
func TestDamagedPixels(t *testing.T) {
	// broken returns data with bytes that are not a code, at the given distance from its end.
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
		"in the middle":     {"what is above is there", broken(asJPEG(t, quarters(640, 480)), 3000), true},
		"between restarts":  {"the rows below are there, too", broken(sample(t, "restarts.jpg"), 400), true},
		"cut":               {"what is above is there", sample(t, "restarts.jpg")[:1300], true},
		"of a late scan":    {"it is less sharp", broken(sample(t, "progressive.jpg"), 40), true},
		"of the first scan": {"nothing of it can be shown", broken(sample(t, "progressive.jpg"), 1200), false},
		"of all colours":    {"they come one after another", sample(t, "channels.jpg")[:1000], false},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, tc.data, jpegType), rendition.Target{MaxWidth: 64})
			if problem, ok := errors.AsType[*rendition.ConversionError](err); !tc.want && !ok {
				t.Errorf("%s: made %+v, %v", tc.why, r, problem)
			}
			if tc.want && (err != nil || r.Width != 64) {
				t.Errorf("%s: made %+v, %v", tc.why, r, err)
			}
		})
	}
}
