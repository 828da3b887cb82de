// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"encoding/binary"
	"slices"
)

// A video is a tree of boxes (ISO 14496-12, section 4.2; QuickTime File Format, "Atoms"). A box with a location becomes
// a box of free space; see metadata.go. Locations in samples, which are stored among the frames, are filled with zeros;
// see tracks.go.

const (
	// maxBoxes limits the boxes in a file, as in package probe.
	maxBoxes = 1_000_000
	// maxTracks limits the tracks in a video, as in package probe.
	maxTracks = 128
	// The lengths of a box header: boxHeader with a 32-bit size, and longBoxHeader with a 64-bit size.
	boxHeader, longBoxHeader = 8, 16
	// maxMedia limits the number of recorded parts with frames. A video without fragments has one.
	maxMedia = maxPatches
)

// box is the position of a box: it starts at at, and its content is [start, end).
type box struct {
	kind string
	at   int64
	span
}

type film struct {
	*cleaner

	// whole is the video's position in the file. Offsets in the video count from its start.
	whole span
	// media are the parts with frames and samples. fragments is true if there are fragments.
	media     []span
	fragments bool
	// tracks are the video's tracks; the last one is being read.
	tracks []track
	// blocks are tables of the data that dashboard cameras write among the frames.
	blocks []span
	// usual is the default sample size in fragments, by track.
	usual map[uint32]uint32
}

// film cleans a video, and returns its end, where data that is not a box begins.
func (c *cleaner) film(whole span) (end int64) {
	f := film{cleaner: c, whole: whole, usual: map[uint32]uint32{}}
	end = f.walk(whole, "", f.top)
	f.tracks = slices.DeleteFunc(f.tracks, func(t track) bool { return !f.hasPlaces(&t) })
	if f.ended() || len(f.tracks) == 0 && len(f.blocks) == 0 {
		return end
	}
	if len(f.media) == maxMedia {
		f.failf("has its frames in more than %d parts, too many to search for locations", maxMedia)
		return end
	}
	for _, table := range f.blocks {
		f.emptyBlocks(table)
	}
	for i := range f.tracks {
		f.empty(&f.tracks[i])
	}
	if f.fragments && len(f.tracks) > 0 {
		f.walk(whole, "", f.fragment)
	}
	return end
}

// walk visits the boxes in a span, within a box of kind outer, and returns their end. It stops at an invalid box.
func (f *film) walk(in span, outer string, visit func(outer string, b box)) (end int64) {
	for at := in.start; in.end-at >= boxHeader; {
		b, ok := f.box(at, in.end)
		f.boxes++
		if f.boxes > maxBoxes {
			f.failf("has more than %d parts, too many to search for its location", maxBoxes)
		}
		if !ok || f.ended() {
			return at
		}
		visit(outer, b)
		at = b.end
	}
	return in.end
}

// box reads the header of a box that must not extend beyond end. It returns false if there is none.
func (f *film) box(at, end int64) (b box, ok bool) {
	var head [boxHeader]byte
	if !f.read(head[:], at) {
		return b, false
	}
	b = box{kind: string(head[4:]), at: at, span: span{at + boxHeader, end}}
	size := uint64(binary.BigEndian.Uint32(head[:]))
	switch size {
	case 0: // extends to the end of the file
		return b, true
	case 1:
		if !f.read(head[:], at+boxHeader) {
			return b, false
		}
		b.start, size = at+longBoxHeader, binary.BigEndian.Uint64(head[:])
	}
	if size > uint64(end-at) || at+int64(size) < b.start { //nolint:gosec // it ends within the file
		return b, false
	}
	b.end = at + int64(size) //nolint:gosec // it is within the file
	return b, true
}

// top reads a box at the top level of the file, and the boxes that describe the video.
func (f *film) top(outer string, b box) {
	switch outer + "/" + b.kind {
	case "/mdat":
		if len(f.media) < maxMedia {
			f.media = append(f.media, b.span)
		}
	case "/moof":
		f.fragments = true
	case "/moov", "trak/mdia", "mdia/minf", "minf/stbl", "moov/mvex":
		f.walk(b.span, b.kind, f.top)
	case "moov/trak":
		if len(f.tracks) == maxTracks {
			f.failf("has more than %d tracks, each of which may contain a location", maxTracks)
			return
		}
		f.tracks = append(f.tracks, track{})
		f.walk(b.span, b.kind, f.top)
	case "trak/tkhd":
		f.tracks[len(f.tracks)-1].id = f.trackID(b)
	case "mvex/trex":
		f.defaults(b)
	case "stbl/stsd", "stbl/stsc", "stbl/stsz", "stbl/stz2", "stbl/stco", "stbl/co64":
		f.tracks[len(f.tracks)-1].record(b)
	default:
		if outer == "" || outer == "moov" || outer == "trak" {
			f.metadata(outer, b)
		}
	}
}

// trackID reads a track's number from its tkhd (ISO 14496-12, section 8.3.2).
func (f *film) trackID(b box) uint32 {
	const short, wide = 12, 20 // after the version and two times of 4 or 8 bytes
	version := f.word(b.span, 0) >> 24
	if version == 0 {
		return f.word(b.span, short)
	}
	return f.word(b.span, wide)
}

// word reads 32 bits at an offset in a box's content, or returns zero if they are missing.
func (f *film) word(in span, at int64) uint32 {
	var data [4]byte
	if at < 0 || at > in.length()-int64(len(data)) || !f.read(data[:], in.start+at) {
		return 0
	}
	return binary.BigEndian.Uint32(data[:])
}

func (f *film) free(b box) {
	f.found.replace(b.at+4, []byte("free"))
	f.found.fill(b.span, 0)
}
