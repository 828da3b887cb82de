// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"math/bits"
	"slices"
	"sort"
)

const maxUsual = 1024

// defaults reads trex, the default size of a track's samples in fragments (ISO 14496-12, section 8.8.3).
func (f *film) defaults(b box) {
	const id, size = 4, 16
	if len(f.usual) < maxUsual {
		f.usual[f.word(b.span, id)] = f.word(b.span, size)
	}
}

func (f *film) mediaFrom(at int64) []span {
	return f.media[sort.Search(len(f.media), func(i int) bool { return f.media[i].end > at }):]
}

func (f *film) fragment(_ string, b box) {
	if b.kind != "moof" {
		return
	}
	// A run without a position follows the previous one; the first one follows the fragment.
	next := b.at - f.whole.start
	f.walk(b.span, b.kind, func(_ string, track box) {
		if track.kind != "traf" {
			return
		}
		run := run{film: f, moof: b.at - f.whole.start, next: next}
		f.walk(track.span, track.kind, run.read)
		next = run.next
	})
}

type run struct {
	film *film
	// places is true if the samples are locations, and size is the default sample length.
	places bool
	size   uint32
	// moof is the start of the fragment, base the origin of offsets, and next the position of the next samples if they
	// do not specify one. All are offsets in the video.
	moof, base, next int64
}

func (r *run) read(_ string, b box) {
	switch b.kind {
	case "tfhd":
		r.readHeader(b)
	case "trun":
		r.readSamples(b)
	}
}

// readHeader reads a track's header in a fragment (ISO 14496-12, section 8.8.7).
func (r *run) readHeader(b box) {
	const (
		id, fixed                                       = 4, 8
		hasOffset, hasDescription, hasDuration, hasSize = 0x1, 0x2, 0x8, 0x10
		fromFragment                                    = 0x20000
	)
	f := r.film
	flags, number := f.word(b.span, 0), f.word(b.span, id)
	r.places = slices.ContainsFunc(f.tracks, func(t track) bool { return t.id == number })
	r.size, r.base = f.usual[number], r.next
	at := int64(fixed)
	if flags&hasOffset != 0 {
		r.base = int64(uint64(f.word(b.span, at))<<32 | uint64(f.word(b.span, at+4))) //nolint:gosec // a wrong one is outside of the film
		at += 8
	} else if flags&fromFragment != 0 {
		r.base = r.moof
	}
	if flags&hasSize != 0 {
		at += 4 * int64(bits.OnesCount32(flags&(hasDescription|hasDuration)))
		r.size = f.word(b.span, at)
	}
	r.next = r.base
}

// readSamples reads consecutive samples (ISO 14496-12, section 8.8.8), and clears them if they are locations.
func (r *run) readSamples(b box) {
	const (
		fixed, word                            = 8, 4
		hasOffset, hasFirst, hasSize, ofSample = 0x1, 0x4, 0x200, 0xf00
		hasDuration                            = 0x100
	)
	f := r.film
	flags, count := f.word(b.span, 0), int64(f.word(b.span, word))
	at := int64(fixed)
	if flags&hasOffset != 0 {
		r.next = r.base + int64(int32(f.word(b.span, at))) //nolint:gosec // it has a sign
		at += word
	}
	if flags&hasFirst != 0 {
		at += word
	}
	length := count * int64(r.size)
	if flags&hasSize != 0 {
		entry := int64(word * bits.OnesCount32(flags&ofSample))
		at += int64(word * bits.OnesCount32(flags&hasDuration))
		length = 0
		for range min(count, b.length()/entry) {
			length += int64(f.word(b.span, at))
			at += entry
		}
	}
	if r.places {
		f.zero(r.next, length)
	}
	r.next += length
}
