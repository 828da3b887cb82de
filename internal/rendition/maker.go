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

	"github.com/herald-social/herald/internal/mediastore"
)

// Store is what is asked of the store of files; mediastore has it.
type Store interface {
	Stat(ctx context.Context, key string) (mediastore.Object, error)
	ReaderAt(ctx context.Context, key, etag string, size int64) io.ReaderAt
	Open(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error)
	PutTagged(ctx context.Context, key, mimeType string, size int64, body io.Reader, tags map[string]string) (mediastore.Object, error)
}

// Maker makes renditions, one at a time: a picture takes up to 256 MiB while it
// is converted. It may be used by many goroutines at once.
type Maker struct {
	store Store
	// turn is held while a picture is in memory.
	turn *semaphore.Weighted
	// known are the renditions that were asked for last, by key.
	known *lru.Cache
}

// ErrBusy is returned when other images were converted for as long as the context
// allowed to wait.
var ErrBusy = errors.New("other images are being converted")

// remembered is how many renditions a process knows without asking the store.
const remembered = 4096

// NewMaker makes a Maker.
func NewMaker(store Store) *Maker {
	return &Maker{store: store, turn: semaphore.NewWeighted(1), known: lru.New(remembered)}
}

// The tags that a rendition is stored with.
const widthTag, heightTag = "width", "height"

// Find returns the rendition of a source for a target, if there is one: from
// memory, or else from the store. The error is mediastore.ErrNotFound if there is
// none.
func (m *Maker) Find(ctx context.Context, source Source, t Target) (Rendition, error) {
	key := Key(source, t)
	if known, ok := m.known.Get(key); ok {
		if r, ok := known.(Rendition); ok {
			return r, nil
		}
	}
	return m.look(ctx, key)
}

// Forget has Find ask the store again.
func (m *Maker) Forget(r Rendition) { m.known.Remove(r.Key) }

func (m *Maker) look(ctx context.Context, key string) (Rendition, error) {
	object, err := m.store.Stat(ctx, key)
	if err != nil {
		m.known.Remove(key)
		return Rendition{}, err
	}
	r := Rendition{Key: key, ETag: object.ETag, MIMEType: object.ContentType, Size: object.Size}
	r.Width, _ = strconv.Atoi(object.Tags[widthTag])
	r.Height, _ = strconv.Atoi(object.Tags[heightTag])
	m.known.Add(key, r)
	return r, nil
}

// Make returns the rendition of a source for a target, and makes it if the store
// has none. The error is a *Problem if none can be made of this file; it is
// mediastore.ErrChanged or ErrNotFound if the source is not there any more, and
// ErrBusy if its turn did not come; any other is the store's.
func (m *Maker) Make(ctx context.Context, source Source, t Target) (Rendition, error) {
	key := Key(source, t)
	if r, err := m.look(ctx, key); !errors.Is(err, mediastore.ErrNotFound) {
		return r, err
	}
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return Rendition{}, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	defer m.turn.Release(1)
	// Somebody else may have made it meanwhile.
	if r, err := m.look(ctx, key); !errors.Is(err, mediastore.ErrNotFound) {
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
	object, err := m.store.PutTagged(ctx, key, made.mimeType, int64(len(made.data)), bytes.NewReader(made.data),
		map[string]string{widthTag: strconv.Itoa(made.width), heightTag: strconv.Itoa(made.height)})
	if err != nil {
		return Rendition{}, err
	}
	r := Rendition{Key: key, ETag: object.ETag, MIMEType: made.mimeType, Size: object.Size, Width: made.width, Height: made.height}
	m.known.Add(key, r)
	return r, nil
}
