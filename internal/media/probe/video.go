// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"io"
	"math"
	"time"
)

// longest is longer than what any platform takes. A file that claims more is
// damaged.
const longest = 30 * 24 * time.Hour

// film is what the boxes of an MP4 or QuickTime file say.
type film struct {
	boxes
	// media, index and parts report whether there are frames (mdat), a
	// description (moov) and fragments (moof).
	media, index, parts bool
	timescale           uint32
	// whole is the duration of the film without its fragments, and parted that
	// of the film with them, in units of the timescale; zero if not known.
	whole, parted float64
	tracks        []track
	// run is the present fragment of a track.
	run run
	// fragments is what each track has in fragments, by its number.
	fragments map[uint32]*fragments
	// indexed is the duration that segment indexes give, by what they index.
	indexed map[uint32]time.Duration
}

type track struct {
	id            uint32
	video         bool
	width, height float64
	turned        bool
	timescale     uint32
	// times is the table of the durations of the samples outside fragments; the
	// zero value if there is none.
	times box
}

// video examines an MP4 or QuickTime film by its boxes, without its frames.
func video(file *blocks, size int64) (Facts, error) {
	f := film{boxes: boxes{file: file, size: size}, fragments: map[uint32]*fragments{}, indexed: map[uint32]time.Duration{}}
	err := f.walk(box{end: size}, "")
	switch {
	case errors.Is(err, errCutOff) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return Facts{}, damaged("The video is cut off: a part of it reaches beyond its end. Upload the whole file.")
	case err != nil:
		return Facts{}, unreadable(err)
	case !f.index:
		return Facts{}, damaged("The video is damaged or cut off: the part that describes it (moov) is missing. Upload the whole file, or export it again.")
	case !f.media:
		return Facts{}, damaged("The video is damaged or cut off: it has no frames (mdat). Upload the whole file, or export it again.")
	}
	shown, facts := f.picture()
	if shown == nil {
		return Facts{}, damaged("The file shows no moving picture: it has no video track. Upload a video.")
	}
	facts.Duration, err = f.duration(shown)
	return facts, err
}

func unreadable(err error) *Problem {
	return damaged("The video is damaged: its structure cannot be read (%v). Export it again.", err)
}

// walk reads the boxes that a box of this kind holds; kind is empty for the file.
func (f *film) walk(outer box, kind string) error {
	// What is too short for a header is the zero that ends some QuickTime boxes.
	for at := outer.start; outer.end-at >= boxHeader; {
		f.seen++
		if f.seen > maxBoxes {
			return errTooMany
		}
		found, err := f.header(at, outer.end)
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

// read reads a box within one of kind outer. It decides how deep a film is
// followed: other boxes are passed over.
func (f *film) read(outer string, b box) (err error) {
	switch kind := string(b.kind[:]); outer + "/" + kind {
	case "/mdat":
		f.media = true
	case "/moov":
		// Files that were joined may repeat it; players use the first.
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
	case "moov/trak":
		if len(f.tracks) == maxTracks {
			return errTooWide
		}
		f.tracks = append(f.tracks, track{})
		return f.walk(b, kind)
	case "moov/mvex", "trak/mdia", "mdia/minf", "minf/stbl":
		return f.walk(b, kind)
	case "mvex/mehd":
		return f.extent(b)
	case "mvex/trex":
		return f.defaults(b)
	case "trak/tkhd":
		return f.display(b)
	case "mdia/mdhd":
		f.track().timescale, _, err = f.times(b)
	case "mdia/hdlr":
		return f.handler(b)
	case "stbl/stts":
		f.track().times = b
	case "moof/traf":
		f.run = run{}
		return f.walk(b, kind)
	case "traf/tfhd":
		return f.begin(b)
	case "traf/trun":
		return f.follow(b)
	}
	return err
}

// track returns the track that is being read.
func (f *film) track() *track { return &f.tracks[len(f.tracks)-1] }

// handler reads hdlr, which says whether a track is video (ISO 14496-12, section
// 8.4.3).
func (f *film) handler(b box) error {
	const kind, end = 8, 12
	data, err := f.fields(b, end)
	if err == nil && string(data[kind:]) == "vide" {
		f.track().video = true
	}
	return err
}

// times reads the units per second and the duration of mvhd or mdhd, which
// begin alike; an unknown duration is zero (ISO 14496-12, sections 8.2.2 and
// 8.4.2).
func (f *film) times(b box) (timescale uint32, duration float64, err error) {
	data, wide, err := f.versioned(b, 8, 3)
	if err != nil {
		return 0, 0, err
	}
	data = data[4+2*wide:] // Behind when it was made, and changed.
	units := number(data[4:], wide)
	if unknown := uint64(math.MaxUint64) >> (64 - 8*wide); units == unknown {
		units = 0
	}
	return u32(data), float64(units), nil
}

// display reads how the last track is shown, from its tkhd (ISO 14496-12,
// section 8.3.2).
func (f *film) display(b box) error {
	data, wide, err := f.versioned(b, 72, 3)
	if err != nil {
		return err
	}
	t := f.track()
	t.id = u32(data[4+2*wide:])
	data = data[28+3*wide:] // The matrix, of nine cells, and the size.
	const cell, one, width, height = 4, 1 << 16, 36, 40
	t.width, t.height = float64(u32(data[width:]))/one, float64(u32(data[height:]))/one
	// The matrix turns to the side when its diagonal is empty.
	t.turned = u32(data) == 0 && u32(data[4*cell:]) == 0 && u32(data[1*cell:]) != 0
	return nil
}

// picture returns the first video track and its size; nil if there is none.
func (f *film) picture() (*track, Facts) {
	for i := range f.tracks {
		t := &f.tracks[i]
		width, height := math.Round(t.width), math.Round(t.height)
		if !t.video || width < 1 || height < 1 {
			continue
		}
		if t.turned {
			width, height = height, width
		}
		return t, Facts{Width: int32(width), Height: int32(height)}
	}
	return nil, Facts{}
}

// duration returns how long the film plays. A film in fragments says so in a box
// of its own, or only by the samples of its video, or by an index.
func (f *film) duration(shown *track) (time.Duration, error) {
	long := time.Duration(0)
	if f.parts || f.whole == 0 {
		long = lasting(f.parted, f.timescale)
	}
	if long == 0 {
		long = lasting(f.whole, f.timescale)
		if f.parts {
			// Its header may describe the beginning only.
			units, err := f.samples(shown)
			if err != nil {
				return 0, unreadable(err)
			}
			long = max(long, lasting(units, shown.timescale))
		}
	}
	if long == 0 {
		for _, indexed := range f.indexed {
			long = max(long, indexed)
		}
	}
	switch {
	case long < time.Millisecond:
		return 0, damaged("The video is damaged: it does not say how long it plays. Export it again.")
	case long > longest:
		return 0, damaged("The video is damaged: it says that it plays for more than %d days. Export it again.", int(longest.Hours()/24))
	}
	return long, nil
}

// lasting converts units to a duration; one that exceeds the longest is just over
// it.
func lasting(units float64, timescale uint32) time.Duration {
	if timescale == 0 {
		return 0
	}
	seconds := units / float64(timescale)
	if seconds > longest.Seconds() {
		return longest + 1
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}
