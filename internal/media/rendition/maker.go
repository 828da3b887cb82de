// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"runtime/debug"
)

// Maker makes renditions, each in a process apart. It may be used by many goroutines at
// once.
type Maker struct {
	store Store
	shelf *Shelf
	// places is how many images are converted at once.
	places int
}

// NewMaker returns a Maker. It converts as many images at once as there are processors
// and memory for.
func NewMaker(store Store) *Maker {
	return NewMakerOf(store, places(runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)))
}

// NewMakerOf returns a Maker that converts so many images at once.
func NewMakerOf(store Store, places int) *Maker {
	return &Maker{store: store, shelf: NewShelf(store, NewTurns(places)), places: places}
}

// Beside returns the turns of other work, one at a time, that takes so many bytes: those
// of images where the memory of this process, and of those that it starts, is too little
// for both.
func (m *Maker) Beside(each uint64) Turns {
	if roomBeside(m.places, debug.SetMemoryLimit(-1), each) {
		return NewTurns(1)
	}
	return m.shelf.turns
}

// roomBeside reports whether a limit of memory has room for the work on so many images and
// for so many bytes more.
func roomBeside(places int, memory int64, each uint64) bool {
	return memory == math.MaxInt64 || memory-ownMemory-int64(places)*perPlace >= int64(each) //nolint:gosec // a constant of this program
}

const (
	// ownMemory is what the manager itself needs, in bytes, where its memory is
	// limited, and perPlace what one conversion takes.
	ownMemory, perPlace = 192 << 20, mostData
	// mostPlaces is how many images are converted at once at most: posts have them
	// converted ahead of their time.
	mostPlaces = 4
)

// places is how many images are converted at once with so many processors and a limit
// of memory, which is math.MaxInt64 if there is none.
func places(processors int, memory int64) int {
	most := min(processors, mostPlaces)
	if memory != math.MaxInt64 {
		most = min(most, int(max(memory-ownMemory, 0)/perPlace))
	}
	return max(most, 1)
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
// any other is the store's, or the system's.
func (m *Maker) Make(ctx context.Context, source Source, t Target) (Rendition, error) {
	r, err := m.shelf.Make(ctx, Key(source, t), func() (Made, error) {
		j, err := plan(source, t, m.store.ReaderAt(ctx, source.Key, source.ETag, source.Size))
		if err != nil {
			return Made{}, err
		}
		return run(ctx, j, func() (io.ReadCloser, error) {
			return m.store.Open(ctx, source.Key, source.ETag, 0, source.Size)
		})
	})
	if exhausted, ok := errors.AsType[*Exhausted](err); ok {
		err = &Problem{Message: exhausted.Error() + "; it is not tried again: export it anew, as a JPEG of fewer pixels, and upload that", Err: exhausted.Err}
	}
	return r, err
}
