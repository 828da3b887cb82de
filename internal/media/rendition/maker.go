// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"golang.org/x/sync/semaphore"

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
	// turn is held while a picture is in memory.
	turn *semaphore.Weighted
}

// ErrBusy is returned when other images were being converted until the context
// ended.
var ErrBusy = errors.New("other images are being converted")

// NewMaker returns a Maker.
func NewMaker(store Store) *Maker {
	return &Maker{store: store, shelf: NewShelf(store), turn: semaphore.NewWeighted(1)}
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
	key := Key(source, t)
	if r, err := m.shelf.Look(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return Rendition{}, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	defer m.turn.Release(1)
	// Another call may have made it meanwhile.
	if r, err := m.shelf.Look(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	made, err := convert(source, t, m.store.ReaderAt(ctx, source.Key, source.ETag, source.Size), func() (io.ReadCloser, error) {
		return m.store.Open(ctx, source.Key, source.ETag, 0, source.Size)
	})
	// Pictures are the largest things that the process ever holds, and rare.
	debug.FreeOSMemory()
	if err != nil {
		return Rendition{}, err
	}
	return m.shelf.Keep(ctx, key, made.mimeType, made.data, made.width, made.height)
}
