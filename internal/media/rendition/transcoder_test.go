// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// converter returns a video or an error, and counts its calls.
type converter struct {
	film  []byte
	err   error
	calls int
}

func (c *converter) Convert(_ context.Context, video rendition.VideoSource, _ *rendition.Conversion, output *os.File, done func(share float64)) error {
	c.calls++
	done(0.5)
	if c.err != nil {
		return c.err
	}
	_, err := output.Write(c.film)
	return err
}

// TestMaker checks that conversions and failures are remembered.
func TestMaker(t *testing.T) {
	film, err := os.ReadFile("../probe/testdata/tail.mp4")
	must.Succeed(t, err)
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	object, err := files.Put(t.Context(), "team/film", "video/mp4", int64(len(film)), bytes.NewReader(film))
	must.Succeed(t, err)
	source := rendition.TranscodeSource{
		Source: rendition.Source{Key: object.Key, ETag: object.ETag, MIMEType: "video/mp4", Size: object.Size}, Duration: time.Second,
	}
	unable := &rendition.TranscodeError{Message: "cannot be decoded", Final: true}
	tests := map[string]struct {
		reason    string
		converter converter
		wantErr   error
		calls     int
	}{
		"converted":            {"the conversion is shared by all posts", converter{film: film}, nil, 1},
		"unable":               {"a permanent failure is not retried", converter{err: unable}, unable, 1},
		"not yet":              {"another attempt may succeed", converter{err: rendition.ErrKilled}, rendition.ErrKilled, 2},
		"not a film":           {"the result is verified before upload", converter{film: []byte("no film")}, nil, 1},
		"store is unavailable": {"the file is not at fault", converter{err: store.ErrChanged}, store.ErrChanged, 2},
		"made an empty file":   {"an empty file is not a video", converter{}, nil, 1},
	}
	width := 0
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			width++
			target := rendition.Profile{Width: 100 + width, Height: 100}
			m := rendition.NewTranscoder(files, &tc.converter, rendition.NewSlots(1))
			var progress []float64
			var r rendition.Rendition
			var err error
			for range 2 {
				r, err = m.Make(t.Context(), source, target, func(share float64) { progress = append(progress, share) })
			}
			problem := new(rendition.TranscodeError)
			switch {
			case tc.wantErr != nil:
				if !errors.Is(err, tc.wantErr) {
					t.Errorf("%s: got %v", tc.reason, err)
				}
			case !bytes.Equal(tc.converter.film, film):
				if !errors.As(err, &problem) || !problem.Final {
					t.Errorf("%s: got %v", tc.reason, err)
				}
			default:
				body, openErr := files.Open(t.Context(), r.Key, r.ETag, 0, r.Size)
				if err != nil || openErr != nil {
					t.Fatalf("%s: %v, %v", tc.reason, err, openErr)
				}
				data, _ := io.ReadAll(body)
				if !bytes.Equal(data, film) || r.Width != 64 || r.Height != 48 || r.MIMEType != "video/mp4" || r.Key != rendition.TranscodeKey(source.Source, target) {
					t.Errorf("%s: got %+v", tc.reason, r)
				}
				if found, err := m.Find(t.Context(), source.Source, target); err != nil || found != r {
					t.Errorf("found %+v, %v", found, err)
				}
			}
			if tc.converter.calls != tc.calls || len(progress) != tc.calls {
				t.Errorf("%s: converted %d times, progress %v, want %d", tc.reason, tc.converter.calls, progress, tc.calls)
			}
			if _, underWay := m.Progress(source.Source, target); underWay {
				t.Error("a finished conversion has progress")
			}
		})
	}
}
