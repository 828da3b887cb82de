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
	// places is how many images are converted at once; others is what other work takes
	// beside them, in bytes.
	places int
	others int64
	// memory is the limit of this process and of those that it starts, together, in bytes.
	memory int64
}

// NewMaker returns a Maker. It converts as many images at once as there are processors
// and memory for.
func NewMaker(store Store) *Maker {
	memory := debug.SetMemoryLimit(-1)
	m := NewMakerOf(store, places(runtime.GOMAXPROCS(0), memory))
	m.memory = memory
	return m
}

// NewMakerOf returns a Maker that converts so many images at once, whatever memory there is.
func NewMakerOf(store Store, places int) *Maker {
	return &Maker{store: store, shelf: NewShelf(store, NewTurns(places)), places: places, memory: math.MaxInt64}
}

// Beside returns the turns of other work, one at a time, that takes so many bytes: those
// of images where the memory of this process, and of those that it starts, is too little
// for both.
func (m *Maker) Beside(each uint64) Turns {
	if roomBeside(m.places, m.memory, each) {
		m.others += int64(each) //nolint:gosec // a constant of this program
		return NewTurns(1)
	}
	return m.shelf.turns
}

// HasRoom reports whether the limit of memory has room for work that takes so many bytes, beside
// what this process needs itself.
func (m *Maker) HasRoom(each int64) bool { return m.memory >= m.RoomFor(each) }

// RoomFor is the least limit of memory, in bytes, that has room for work that takes so many.
func (*Maker) RoomFor(each int64) int64 { return ownMemory + each }

// LeaveRoom lowers the limit of this process's own memory, so that what it starts fits
// beside it into the limit of both: a container that has too little ends as a whole. To be
// called once, after Beside.
func (m *Maker) LeaveRoom() { debug.SetMemoryLimit(ownLimit(m.places, m.memory, m.others)) }

// ownLimit is what is left to this process of a limit of memory beside so many images and
// other work, all in bytes; math.MaxInt64 if there is no limit.
func ownLimit(places int, memory, others int64) int64 {
	if memory == math.MaxInt64 {
		return memory
	}
	return max(memory-int64(places)*perPlace-others, ownMemory)
}

// share is what of a limit of memory is for processes that decode, in bytes. Half is this
// process's own: what it knows of posts grows with their number, as the limit is chosen.
func share(memory int64) int64 { return max(memory-max(ownMemory, memory/2), 0) }

// roomBeside reports whether a limit of memory has room for the work on so many images and
// for so many bytes more.
func roomBeside(places int, memory int64, each uint64) bool {
	return memory == math.MaxInt64 || share(memory)-int64(places)*perPlace >= int64(each) //nolint:gosec // a constant of this program
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
// of memory, which is math.MaxInt64 if there is none. There is one at least, though a
// small limit has no room for it: the largest images need it, others take much less.
func places(processors int, memory int64) int {
	most := min(processors, mostPlaces)
	if memory != math.MaxInt64 {
		most = min(most, int(share(memory)/perPlace))
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
		open := func() (io.ReadCloser, error) { return m.store.Open(ctx, source.Key, source.ETag, 0, source.Size) }
		made, err := run(ctx, j, open)
		// Viewers show a JPEG with damaged pixels as far as it goes, and so do the platforms
		// that get it as it is. To mend it takes the file twice.
		if errors.Is(err, errDecoded) && source.MIMEType == jpegType && j.room >= 2*source.Size {
			j.Mend = true
			return run(ctx, j, open)
		}
		return made, err
	})
	if exhausted, ok := errors.AsType[*Exhausted](err); ok {
		err = &Problem{Message: exhausted.Error() + "; it is not tried again: export it anew, as a JPEG of fewer pixels, and upload that", Err: exhausted.Err}
	}
	return r, err
}
