// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/herald-social/herald/internal/media/location"
)

// opened is a store with one file. It counts the file's reads.
type opened struct {
	data  []byte
	err   error
	reads atomic.Int64
}

func (o *opened) open(_ context.Context, _, _ string, offset, length int64) (io.ReadCloser, error) {
	o.reads.Add(1)
	if o.err != nil {
		return nil, o.err
	}
	return io.NopCloser(bytes.NewReader(o.data[offset : offset+length])), nil
}

// TestFinder checks that a file is searched once, for any number of callers and any result.
func TestFinder(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		data   []byte
		found  bool
		bad    bool
	}{
		"with a place": {"the patches are remembered", placed(t), true, false},
		"without":      {"the empty result is cached", photo(t), false, false},
		"bad":          {"a file that cannot be parsed is cached too", join(photo(t), bytes.Repeat([]byte("\xff\xd8\xff\xd9"), 2000)), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			from := &opened{data: tc.data}
			finder := location.NewFinder(from.open)
			find := func() {
				found, err := finder.Find(t.Context(), location.File{Key: "team/a", ETag: "e", MIMEType: jpegType, Size: int64(len(tc.data))})
				problem := new(location.UnreadableError)
				if found.Empty() == tc.found || errors.As(err, &problem) != tc.bad || err != nil && !tc.bad {
					t.Errorf("%s: %d bytes are replaced, %v", tc.reason, found.Bytes(), err)
				}
			}
			find()
			once := from.reads.Load()
			var all sync.WaitGroup
			for range 8 {
				all.Go(find)
			}
			all.Wait()
			if now := from.reads.Load(); once == 0 || now != once {
				t.Errorf("%s: %d reads, and %d later", tc.reason, once, now)
			}
		})
	}
}

// TestFinderFails checks that an unavailable store is tried again, and that its error is returned.
func TestFinderFails(t *testing.T) {
	away := errors.New("the store is unavailable")
	from := &opened{data: placed(t), err: away}
	finder := location.NewFinder(from.open)
	file := location.File{Key: "team/a", ETag: "e", MIMEType: jpegType, Size: int64(len(from.data))}
	if _, err := finder.Find(t.Context(), file); !errors.Is(err, away) {
		t.Errorf("error %v, want the store's", err)
	}
	from.err = nil
	if found, err := finder.Find(t.Context(), file); err != nil || found.Empty() {
		t.Errorf("no location was found after the store recovered: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file.ETag = "another"
	if _, err := finder.Find(ctx, file); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled caller got %v", err)
	}
}

// TestFinderEvicts checks that the size of the cache is limited.
func TestFinderEvicts(t *testing.T) {
	film := &opened{data: movie(make([]byte, 100_000), trak(dotted(20_000)))}
	finder := location.NewFinder(film.open)
	find := func(i int) {
		t.Helper()
		found, err := finder.Find(t.Context(), location.File{Key: fmt.Sprint("team/", i), ETag: "e", MIMEType: mp4Type, Size: int64(len(film.data))})
		if err != nil || found.Empty() {
			t.Fatal(found.Bytes(), err)
		}
	}
	const many = 20
	for i := range many {
		find(i)
	}
	reads := film.reads.Load()
	find(many - 1)
	if film.reads.Load() != reads {
		t.Error("the last one was forgotten")
	}
	find(0)
	if film.reads.Load() == reads {
		t.Error("the evicted result is still cached")
	}
}

// dotted returns a track with count locations, each apart from the next.
func dotted(count int) samples {
	s := samples{handler: "meta", id: 2, format: box("gpmd", make([]byte, 8))}
	for i := range count {
		s.offsets, s.sizes = append(s.offsets, uint32(mediaAt+2*i)), append(s.sizes, 1)
	}
	return s
}

// TestTooManyPlaces checks that a video with too many locations is rejected rather than sent unchanged.
func TestTooManyPlaces(t *testing.T) {
	data := movie(make([]byte, 400_000), trak(dotted(150_000)))
	_, err := location.Find(bytes.NewReader(data), int64(len(data)), mp4Type)
	if problem := new(location.UnreadableError); !errors.As(err, &problem) {
		t.Errorf("error %v, want a problem of the file", err)
	}
}
