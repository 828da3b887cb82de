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

// Renderer makes renditions, each in a process apart. It may be used by many goroutines at
// once.
type Renderer struct {
	store FileStore
	cache *Cache
	// places is how many images are converted at once; others is what other work takes
	// beside them, in bytes.
	places int
	others int64
	// memory is the limit of this process and of those that it starts, together, in bytes.
	memory int64
}

// NewRenderer returns a Maker. It converts as many images at once as there are processors
// and memory for.
func NewRenderer(store FileStore) *Renderer {
	memory := debug.SetMemoryLimit(-1)
	m := NewRendererWithSlots(store, places(runtime.GOMAXPROCS(0), memory))
	m.memory = memory
	return m
}

// NewRendererWithSlots returns a Maker that converts so many images at once, whatever memory there is.
func NewRendererWithSlots(store FileStore, places int) *Renderer {
	return &Renderer{store: store, cache: NewCache(store, NewSlots(places)), places: places, memory: math.MaxInt64}
}

// ReserveSlots returns the turns of other work, one at a time, that takes so many bytes: those
// of images where the memory of this process, and of those that it starts, is too little
// for both.
func (m *Renderer) ReserveSlots(each uint64) Slots {
	if fitsBeside(m.places, m.memory, each) {
		m.others += int64(each) //nolint:gosec // a constant of this program
		return NewSlots(1)
	}
	return m.cache.slots
}

// HasMemoryFor reports whether the limit of memory has room for work that takes so many bytes, beside
// what this process needs itself.
func (m *Renderer) HasMemoryFor(each int64) bool { return m.memory >= m.MemoryFor(each) }

// MemoryFor is the least limit of memory, in bytes, that has room for work that takes so many.
func (*Renderer) MemoryFor(each int64) int64 { return baseMemory + each }

// LimitOwnMemory lowers the limit of this process's own memory, so that what it starts fits
// beside it into the limit of both: a container that has too little ends as a whole. To be
// called once, after Beside.
func (m *Renderer) LimitOwnMemory() { debug.SetMemoryLimit(processLimit(m.places, m.memory, m.others)) }

// processLimit is what is left to this process of a limit of memory beside so many images and
// other work, all in bytes; math.MaxInt64 if there is no limit.
func processLimit(places int, memory, others int64) int64 {
	if memory == math.MaxInt64 {
		return memory
	}
	return max(memory-int64(places)*perPlace-others, baseMemory)
}

// decodeBudget is what of a limit of memory is for processes that decode, in bytes. Half is this
// process's own: what it knows of posts grows with their number, as the limit is chosen.
func decodeBudget(memory int64) int64 { return max(memory-max(baseMemory, memory/2), 0) }

// fitsBeside reports whether a limit of memory has room for the work on so many images and
// for so many bytes more.
func fitsBeside(places int, memory int64, each uint64) bool {
	return memory == math.MaxInt64 || decodeBudget(memory)-int64(places)*perPlace >= int64(each) //nolint:gosec // a constant of this program
}

const (
	// baseMemory is what the manager itself needs, in bytes, where its memory is
	// limited, and perPlace what one conversion takes.
	baseMemory, perPlace = 192 << 20, mostData
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
		most = min(most, int(decodeBudget(memory)/perPlace))
	}
	return max(most, 1)
}

// Find returns the rendition of a source for a target, from memory or else from the
// store. The error is store.ErrNotFound if there is none.
func (m *Renderer) Find(ctx context.Context, source Source, t Target) (Rendition, error) {
	return m.cache.Find(ctx, Key(source, t))
}

// Forget makes Find ask the store again.
func (m *Renderer) Forget(r Rendition) { m.cache.Forget(r) }

// Make returns the rendition of a source for a target, and makes it if the store has
// none. The error is a *Problem if this file cannot be converted, store.ErrChanged
// or store.ErrNotFound if the source is gone, and ErrBusy if its turn did not come;
// any other is the store's, or the system's.
func (m *Renderer) Make(ctx context.Context, source Source, t Target) (Rendition, error) {
	r, err := m.cache.GetOrCreate(ctx, Key(source, t), func() (Output, error) {
		j, err := plan(source, t, m.store.ReaderAt(ctx, source.Key, source.ETag, source.Size))
		if err != nil {
			return Output{}, err
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
	if exhausted, ok := errors.AsType[*ExhaustedError](err); ok {
		err = &ConversionError{Message: exhausted.Error() + "; it is not tried again: export it anew, as a JPEG of fewer pixels, and upload that", Err: exhausted.Err}
	}
	return r, err
}
