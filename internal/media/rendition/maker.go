// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/lru"

	"github.com/herald-social/herald/internal/media/store"
)

// Store reads and writes files; *store.Store implements it.
type Store interface {
	Stat(ctx context.Context, key string) (store.Object, error)
	ReaderAt(ctx context.Context, key, etag string, size int64) io.ReaderAt
	Open(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error)
	PutTagged(ctx context.Context, key, mimeType string, size int64, body io.Reader, tags map[string]string) (store.Object, error)
}

// Maker makes renditions, one at a time: a picture takes up to 256 MiB while it
// is converted. It may be used by many goroutines at once.
type Maker struct {
	store Store
	shelf *Shelf
}

// NewMaker returns a Maker.
func NewMaker(store Store) *Maker {
	return &Maker{store: store, shelf: NewShelf(store)}
}

// Find returns the rendition of a source for a target, from memory or else from the
// store. The error is store.ErrNotFound if there is none.
func (m *Maker) Find(ctx context.Context, source Source, t Target) (Rendition, error) {
	return m.shelf.Find(ctx, Key(source, t))
}

// Forget makes Find ask the store again.
func (m *Maker) Forget(r Rendition) { m.shelf.Forget(r) }

// Make returns the rendition of a source for a target, and makes it if the store has
// none. The error is a *Problem if this file cannot be converted, store.ErrChanged
// or store.ErrNotFound if the source is gone, and ErrBusy if its turn did not come;
// any other is the store's.
func (m *Maker) Make(ctx context.Context, source Source, t Target) (Rendition, error) {
	return m.shelf.Make(ctx, Key(source, t), func() (Made, error) {
		// Pictures are the largest things that the process ever holds, and rare.
		defer debug.FreeOSMemory()
		return convert(source, t, m.store.ReaderAt(ctx, source.Key, source.ETag, source.Size), func() (io.ReadCloser, error) {
			return m.store.Open(ctx, source.Key, source.ETag, 0, source.Size)
		})
	})
}

// Shelf keeps renditions in the store, beside their sources, and has them made, one
// at a time. It may be used by many goroutines at once.
type Shelf struct {
	store Store
	// known holds the renditions that were asked for last, by key.
	known *lru.Cache
	// turn is held while one is made.
	turn *semaphore.Weighted
}

// Made is a rendition in memory; the sides of the picture are in pixels.
type Made struct {
	Data          []byte
	MIMEType      string
	Width, Height int
}

// ErrBusy is returned when others were being made until the context ended.
var ErrBusy = errors.New("other images are being converted")

// remembered is how many renditions a process knows without asking the store.
const remembered = 4096

// The tags that a rendition is stored with.
const widthTag, heightTag = "width", "height"

// NewShelf returns a Shelf.
func NewShelf(store Store) *Shelf {
	return &Shelf{store: store, known: lru.New(remembered), turn: semaphore.NewWeighted(1)}
}

// Find returns the rendition under a key, from memory or else from the store.
// The error is store.ErrNotFound if there is none.
func (s *Shelf) Find(ctx context.Context, key string) (Rendition, error) {
	if known, ok := s.known.Get(key); ok {
		if r, ok := known.(Rendition); ok {
			return r, nil
		}
	}
	return s.look(ctx, key)
}

// look is Find, but always asks the store.
func (s *Shelf) look(ctx context.Context, key string) (Rendition, error) {
	object, err := s.store.Stat(ctx, key)
	if err != nil {
		s.known.Remove(key)
		return Rendition{}, err
	}
	return s.know(object), nil
}

// Forget makes Find ask the store again.
func (s *Shelf) Forget(r Rendition) { s.known.Remove(r.Key) }

// Make returns the rendition under a key, and makes it if the store has none. The
// error is ErrBusy if its turn did not come; any other is that of create, or the
// store's.
func (s *Shelf) Make(ctx context.Context, key string, create func() (Made, error)) (Rendition, error) {
	if r, err := s.look(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return Rendition{}, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	defer s.turn.Release(1)
	// Another call may have made it meanwhile.
	if r, err := s.look(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	made, err := create()
	if err != nil {
		return Rendition{}, err
	}
	object, err := s.store.PutTagged(ctx, key, made.MIMEType, int64(len(made.Data)), bytes.NewReader(made.Data),
		map[string]string{widthTag: strconv.Itoa(made.Width), heightTag: strconv.Itoa(made.Height)})
	if err != nil {
		return Rendition{}, err
	}
	return s.know(object), nil
}

// know remembers a file of the store.
func (s *Shelf) know(object store.Object) Rendition {
	r := Rendition{Key: object.Key, ETag: object.ETag, MIMEType: object.ContentType, Size: object.Size}
	r.Width, _ = strconv.Atoi(object.Tags[widthTag])
	r.Height, _ = strconv.Atoi(object.Tags[heightTag])
	s.known.Add(r.Key, r)
	return r
}
