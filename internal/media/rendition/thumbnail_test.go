// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// taker returns its answers in order.
type taker struct {
	answers []error
	calls   int
}

func (t *taker) Extract(context.Context, rendition.VideoSource, time.Duration) (rendition.Picture, error) {
	err := t.answers[t.calls]
	t.calls++
	return rendition.Picture{Data: []byte("picture"), Width: 64, Height: 48}, err
}

func TestThumbnail(t *testing.T) {
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	final, passing := &rendition.ExtractError{Message: "no picture", Final: true}, &rendition.ExtractError{Message: "too slow"}
	down := errors.New("the store is down")
	for name, tc := range map[string]struct {
		reason  string
		answers []error
		calls   int
		made    bool
		found   error
	}{
		"made":         {"an existing thumbnail is not created again", []error{nil}, 1, true, nil},
		"never":        {"a film without a picture never has one", []error{final}, 1, false, final},
		"later":        {"a slow conversion may succeed later", []error{passing, nil}, 2, true, nil},
		"too slow":     {"the reason is stored until a thumbnail exists", []error{passing, passing}, 2, false, passing},
		"store's down": {"the error is not the film's", []error{down, down}, 2, false, store.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			source := rendition.Source{Key: "team/" + strings.ReplaceAll(name, " ", ""), ETag: "e", Size: 4}
			program := &taker{answers: tc.answers}
			maker := rendition.NewThumbnailer(files, program, rendition.NewSlots(1))
			for range 2 {
				_, err = maker.Make(t.Context(), source, time.Second)
			}
			if program.calls != tc.calls || (err == nil) != tc.made {
				t.Errorf("%s: extracted %d times, %v", tc.reason, program.calls, err)
			}
			r, err := maker.Find(t.Context(), source, time.Second)
			if !errors.Is(err, tc.found) || tc.made && (r.Width != 64 || r.Height != 48 || r.MIMEType != "image/jpeg") {
				t.Errorf("%s: found %+v, %v", tc.reason, r, err)
			}
			if _, err := maker.Find(t.Context(), source, 2*time.Second); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("another moment: %v", err)
			}
		})
	}
}
