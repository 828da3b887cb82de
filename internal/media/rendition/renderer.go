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

// Renderer makes renditions, each in a separate process. It is safe for concurrent use.
type Renderer struct {
	store FileStore
	cache *Cache
	// places limits concurrent image conversions; others is the memory for other concurrent work, in bytes.
	places int
	others int64
	// memory is the limit for this process and its child processes together, in bytes.
	memory int64
}

// NewRenderer returns a Renderer. Processors and available memory determine the number of concurrent conversions.
func NewRenderer(store FileStore) *Renderer {
	memory := debug.SetMemoryLimit(-1)
	m := NewRendererWithSlots(store, places(runtime.GOMAXPROCS(0), memory))
	m.memory = memory
	return m
}

// NewRendererWithSlots returns a Renderer with the given number of concurrent conversions, regardless of memory.
func NewRendererWithSlots(store FileStore, places int) *Renderer {
	return &Renderer{store: store, cache: NewCache(store, NewSlots(places)), places: places, memory: math.MaxInt64}
}

// ReserveSlots returns slots for other work that runs one at a time and takes each bytes of memory. If there is not
// enough memory for that work in addition to image conversions, it returns the slots for images.
func (m *Renderer) ReserveSlots(each uint64) Slots {
	if fitsBeside(m.places, m.memory, each) {
		m.others += int64(each) //nolint:gosec // a constant of this program
		return NewSlots(1)
	}
	return m.cache.slots
}

// HasMemoryFor reports whether the memory limit leaves room for work that takes each bytes, besides this process.
func (m *Renderer) HasMemoryFor(each int64) bool { return m.memory >= m.MemoryFor(each) }

// MemoryFor returns the smallest memory limit, in bytes, that leaves room for work that takes each bytes.
func (*Renderer) MemoryFor(each int64) int64 { return baseMemory + each }

// LimitOwnMemory lowers the limit on this process's own memory, so that its child processes fit into the common limit:
// a container that exceeds its limit is killed as a whole. Call it once, after ReserveSlots.
func (m *Renderer) LimitOwnMemory() { debug.SetMemoryLimit(processLimit(m.places, m.memory, m.others)) }

// processLimit returns this process's share of a memory limit, given the number of conversions and other work, all in
// bytes. It returns math.MaxInt64 if there is no limit.
func processLimit(places int, memory, others int64) int64 {
	if memory == math.MaxInt64 {
		return memory
	}
	return max(memory-int64(places)*perPlace-others, baseMemory)
}

// decodeBudget returns the share of a memory limit that decoding processes may use, in bytes. Half of the limit is for
// this process: its memory grows with the number of posts, and the limit is chosen for that number.
func decodeBudget(memory int64) int64 { return max(memory-max(baseMemory, memory/2), 0) }

// fitsBeside reports whether a memory limit leaves room for the given number of conversions plus each bytes.
func fitsBeside(places int, memory int64, each uint64) bool {
	return memory == math.MaxInt64 || decodeBudget(memory)-int64(places)*perPlace >= int64(each) //nolint:gosec // a constant of this program
}

const (
	// baseMemory is the manager's own memory in bytes where it is limited, and perPlace that of one conversion.
	baseMemory, perPlace = 192 << 20, maxData
	// maxPlaces limits concurrent conversions: posts have their images converted ahead of time.
	maxPlaces = 4
)

// places returns the number of concurrent conversions for the given processors and memory limit, which is math.MaxInt64
// if there is none. It is at least one, even under a small limit: only the largest images need that much memory.
func places(processors int, memory int64) int {
	most := min(processors, maxPlaces)
	if memory != math.MaxInt64 {
		most = min(most, int(decodeBudget(memory)/perPlace))
	}
	return max(most, 1)
}

// Find returns the rendition of a source for a target, from memory or else from the store. The error is
// store.ErrNotFound if there is none.
func (m *Renderer) Find(ctx context.Context, source Source, t Target) (Rendition, error) {
	return m.cache.Find(ctx, Key(source, t))
}

// Forget makes Find read from the store again.
func (m *Renderer) Forget(r Rendition) { m.cache.Forget(r) }

// Make returns the rendition of a source for a target, and makes it if the store has none. The error is a
// *ConversionError if this file cannot be converted, store.ErrChanged or store.ErrNotFound if the source is gone, and
// ErrBusy if it got no slot; any other comes from the store or the system.
func (m *Renderer) Make(ctx context.Context, source Source, t Target) (Rendition, error) {
	r, err := m.cache.GetOrCreate(ctx, Key(source, t), func() (Output, error) {
		j, err := plan(source, t, m.store.ReaderAt(ctx, source.Key, source.ETag, source.Size))
		if err != nil {
			return Output{}, err
		}
		open := func() (io.ReadCloser, error) { return m.store.Open(ctx, source.Key, source.ETag, 0, source.Size) }
		output, err := run(ctx, j, open)
		// Viewers show the intact part of a JPEG with damaged pixels, and so do the platforms that get the original. The
		// repair holds the file in memory twice.
		if errors.Is(err, errDecoded) && source.MIMEType == jpegType && j.room >= 2*source.Size {
			j.Mend = true
			return run(ctx, j, open)
		}
		return output, err
	})
	if exhausted, ok := errors.AsType[*ExhaustedError](err); ok {
		err = &ConversionError{Message: exhausted.Error() + "; it is not tried again: export it again, as a JPEG of fewer pixels, and upload that", Err: exhausted.Err}
	}
	return r, err
}
