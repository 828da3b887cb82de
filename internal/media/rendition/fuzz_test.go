// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/test/must"
)

// Any upload becomes a complete image within the limits, or an error with its reason.
func FuzzMake(f *testing.F) {
	types := []string{jpegType, pngType, webpType}
	for i, names := range [][]string{{"picture.jpg", "full.jpg"}, {"picture.png"}, {"picture.webp", "lossless.webp", "transparent.webp", "animated.webp"}} {
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if errors.Is(err, os.ErrNotExist) {
				data, err = os.ReadFile(filepath.Join("..", "probe", "testdata", name))
			}
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, i)
		}
	}
	target := rendition.Target{Types: []string{jpegType, pngType}, MaxBytes: 4 << 10, MaxWidth: 48, MaxHeight: 48, MinAspect: 0.8, MaxAspect: 1.91}
	f.Fuzz(func(t *testing.T, data []byte, kind int) {
		if kind < 0 || kind >= len(types) || len(data) == 0 {
			return
		}
		files := newMemory()
		r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, data, types[kind]), target)
		if problem := new(rendition.ConversionError); errors.As(err, &problem) {
			return
		}
		must.Succeed(t, err)
		facts, err := probe.Probe(bytes.NewReader(files.files[r.Key].data), r.Size, r.MIMEType)
		if err != nil || int(facts.Width) != r.Width || int(facts.Height) != r.Height {
			t.Errorf("made %+v, which is %+v, %v", r, facts, err)
		}
		if aspect := float64(r.Width) / float64(r.Height); r.Width > 48 || r.Height > 48 || r.Size > 4<<10 || aspect < 0.8 || aspect > 1.91 {
			t.Errorf("made %+v", r)
		}
	})
}
