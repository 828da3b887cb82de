// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

// longest exceeds every platform's limit. A file that claims to be longer is damaged.
const longest = 30 * 24 * time.Hour

type film struct {
	boxes
	// media, index and parts are true if there are frames (mdat), a description (moov) and fragments (moof), respectively.
	media, index, parts bool
	timescale           uint32
	// whole is the video's duration without its fragments, and parted its duration with them, in timescale units. Zero
	// means unknown.
	whole, parted float64
	tracks        []track
	run           run
	fragments     map[uint32]*fragments
	// indexed holds the durations from segment indexes, by indexed track.
	indexed map[uint32]time.Duration
}

type track struct {
	id            uint32
	video         bool
	sound         bool
	width, height float64
	turned        bool
	timescale     uint32
	// length is the duration in the header of the track's samples, in units of its timescale. presented is the duration in
	// the track's header, in units of the video's timescale.
	length, presented float64
	edited            bool
	// times is the table of sample durations outside of fragments, and entry is the first description of the samples'
	// encoding. Each is the zero value if there is none.
	times, entry box
}

// video examines an MP4 or QuickTime video: its boxes, but not its frames.
func video(file *store.BlockReader, size int64) (Facts, error) {
	f := film{boxes: boxes{file: file, size: size}, fragments: map[uint32]*fragments{}, indexed: map[uint32]time.Duration{}}
	err := f.walk(box{end: size}, "")
	switch {
	case errors.Is(err, errCutOff) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return Facts{}, damaged("The video is cut off: a part of it reaches beyond its end. Upload the whole file.")
	case errors.Is(err, errCompressed):
		return Facts{}, &InvalidFileError{Reason: v1alpha1.ReasonUnsupported, Message: "Herald cannot read the video: the part that describes it is compressed (cmov). Export it again, as an MP4."}
	case err != nil:
		return Facts{}, unreadable(err)
	case !f.index:
		return Facts{}, damaged("The video is damaged or cut off: the part that describes it (moov) is missing. Upload the whole file, or export it again.")
	case !f.media:
		return Facts{}, damaged("The video is damaged or cut off: it has no frames (mdat). Upload the whole file, or export it again.")
	}
	facts, err := f.facts()
	if err != nil {
		return Facts{}, unreadable(err)
	}
	return facts.checked()
}

func unreadable(err error) *InvalidFileError {
	return damaged("The video is damaged: its structure cannot be read (%v). Export it again.", err)
}

// walk reads the boxes within a box of the given kind, which is empty for the file itself.
func (f *film) walk(outer box, kind string) error {
	// A remainder that is shorter than a header is the zero that ends some QuickTime boxes.
	for at := outer.start; outer.end-at >= boxHeader; {
		f.seen++
		if f.seen > maxBoxes {
			return errTooMany
		}
		found, err := f.header(at, outer.end)
		if err != nil && kind == "" && f.ignores(found.kind) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.read(kind, found); err != nil {
			return err
		}
		at = found.end
	}
	return nil
}

// ignores reports whether a damaged box of this kind is skipped together with the rest of the file. Programs append
// tags and padding to a complete video, and players skip these. Damage to a box of the video itself means that the file
// is cut off.
func (f *film) ignores(kind [4]byte) bool {
	switch string(kind[:]) {
	case "ftyp", "styp", "moov", "moof", "mdat", "sidx":
		return false
	default:
		return f.index && f.media
	}
}

// read reads a box within a box of kind outer. It descends into some kinds and skips all others.
func (f *film) read(outer string, b box) (err error) {
	switch kind := string(b.kind[:]); outer + "/" + kind {
	case "/mdat":
		f.media = true
	case "/moov":
		// Concatenated files may repeat it. Players use the first one.
		if !f.index {
			f.index = true
			return f.walk(b, kind)
		}
	case "/moof":
		f.parts = true
		return f.walk(b, kind)
	case "/sidx":
		return f.segments(b)
	case "moov/mvhd":
		f.timescale, f.whole, err = f.times(b)
	case "moov/cmov":
		return errCompressed
	case "moov/trak":
		if len(f.tracks) == maxTracks {
			return errTooWide
		}
		f.tracks = append(f.tracks, track{})
		return f.walk(b, kind)
	case "moov/mvex", "trak/mdia", "mdia/minf", "minf/stbl":
		return f.walk(b, kind)
	case "moof/traf":
		f.run = run{}
		return f.walk(b, kind)
	default:
		return f.readTrack(outer+"/"+kind, b)
	}
	return err
}

// readTrack reads a box of one track, given its path.
func (f *film) readTrack(path string, b box) (err error) {
	switch path {
	case "mvex/mehd":
		return f.extent(b)
	case "mvex/trex":
		return f.defaults(b)
	case "trak/tkhd":
		return f.display(b)
	case "trak/edts":
		f.currentTrack().edited = true
	case "mdia/mdhd":
		t := f.currentTrack()
		t.timescale, t.length, err = f.times(b)
	case "mdia/hdlr":
		return f.handler(b)
	case "stbl/stts":
		f.currentTrack().times = b
	case "stbl/stsd":
		return f.description(b)
	case "traf/tfhd":
		return f.readFragmentHeader(b)
	case "traf/trun":
		return f.readFragmentSamples(b)
	}
	return err
}

func (f *film) currentTrack() *track { return &f.tracks[len(f.tracks)-1] }

// handler reads hdlr, which distinguishes video and sound tracks (ISO 14496-12, section 8.4.3). QuickTime tracks have
// additional handlers after the relevant one.
func (f *film) handler(b box) error {
	const kind, end = 8, 12
	data, err := f.fields(b, end)
	if err != nil {
		return err
	}
	switch string(data[kind:]) {
	case "vide":
		f.currentTrack().video = true
	case "soun":
		f.currentTrack().sound = true
	}
	return nil
}

// times reads the timescale in units per second and the duration from mvhd or mdhd, which start the same way. An
// unknown duration is returned as zero (ISO 14496-12, sections 8.2.2 and 8.4.2).
func (f *film) times(b box) (timescale uint32, duration float64, err error) {
	data, wide, err := f.versioned(b, 8, 3)
	if err != nil {
		return 0, 0, err
	}
	data = data[4+2*wide:] // Skip the creation and modification times.
	return u32(data), knownDuration(number(data[4:], wide), wide), nil
}

// knownDuration returns a duration stored in wide bytes, or zero if all bits are set, which means unknown.
func knownDuration(units uint64, wide int) float64 {
	if units == uint64(math.MaxUint64)>>(64-8*wide) {
		return 0
	}
	return float64(units)
}

// display reads the last track's dimensions and rotation from its tkhd (ISO 14496-12, section 8.3.2).
func (f *film) display(b box) error {
	data, wide, err := f.versioned(b, 72, 3)
	if err != nil {
		return err
	}
	t := f.currentTrack()
	t.id = u32(data[4+2*wide:])
	t.presented = knownDuration(number(data[12+2*wide:], wide), wide)
	data = data[28+3*wide:] // The matrix, which has nine cells, and the size.
	const cell, one, width, height = 4, 1 << 16, 36, 40
	t.width, t.height = float64(u32(data[width:]))/one, float64(u32(data[height:]))/one
	// The matrix rotates by 90 or 270 degrees if its diagonal is empty.
	t.turned = u32(data) == 0 && u32(data[4*cell:]) == 0 && u32(data[1*cell:]) != 0
	return nil
}
