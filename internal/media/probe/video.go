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
	whole, parted uint64
	tracks        []track
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
	err := f.each(0, size, f.visit)
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

// visit is called for each box at the top.
func (f *film) visit(b box) error {
	switch string(b.kind[:]) {
	case "mdat":
		f.media = true
	case "moov":
		// Files that were joined may repeat it; players use the first.
		if f.index {
			return nil
		}
		f.index = true
		return f.within(b, f.describe)
	case "moof":
		f.parts = true
		return f.within(b, f.fragment)
	case "sidx":
		return f.segments(b)
	}
	return nil
}

// describe is called for each box in moov.
func (f *film) describe(b box) error {
	switch string(b.kind[:]) {
	case "mvhd":
		var err error
		f.timescale, f.whole, err = f.times(b)
		return err
	case "trak":
		if len(f.tracks) == maxTracks {
			return errTooWide
		}
		f.tracks = append(f.tracks, track{})
		return f.within(b, f.trak)
	case "mvex":
		return f.within(b, f.extend)
	}
	return nil
}

// trak is called for each box in the last track.
func (f *film) trak(b box) error {
	switch string(b.kind[:]) {
	case "tkhd":
		return f.display(b)
	case "mdia":
		return f.within(b, f.mdia)
	}
	return nil
}

// mdia is called for each box in the media of the last track.
func (f *film) mdia(b box) error {
	t := &f.tracks[len(f.tracks)-1]
	switch string(b.kind[:]) {
	case "mdhd":
		var err error
		t.timescale, _, err = f.times(b)
		return err
	case "hdlr":
		const kind, end = 8, 12
		data, err := f.fields(b, end)
		if err != nil {
			return err
		}
		t.video = t.video || string(data[kind:]) == "vide"
	case "minf":
		return f.within(b, f.minf)
	}
	return nil
}

// minf is called for each box that describes the samples of the last track.
func (f *film) minf(b box) error {
	if string(b.kind[:]) != "stbl" {
		return nil
	}
	return f.within(b, func(b box) error {
		if string(b.kind[:]) == "stts" {
			f.tracks[len(f.tracks)-1].times = b
		}
		return nil
	})
}

// times reads the units per second and the duration of mvhd or mdhd, which
// begin alike; an unknown duration is zero (ISO 14496-12, sections 8.2.2 and
// 8.4.2).
func (f *film) times(b box) (timescale uint32, duration uint64, err error) {
	const scale0, length0, scale1, length1 = 12, 20, 20, 32
	data, version, err := f.versioned(b, length0, length1)
	if err != nil {
		return 0, 0, err
	}
	if version == 0 {
		timescale, duration = u32(data[scale0:]), uint64(u32(data[scale0+4:]))
		if duration == math.MaxUint32 {
			duration = 0
		}
		return timescale, duration, nil
	}
	timescale, duration = u32(data[scale1:]), u64(data[scale1+4:])
	if duration == math.MaxUint64 {
		duration = 0
	}
	return timescale, duration, nil
}

// display reads how the last track is shown, from its tkhd (ISO 14496-12,
// section 8.3.2).
func (f *film) display(b box) error {
	const id0, matrix0, length0, id1, matrix1, length1 = 12, 40, 84, 20, 52, longestFields
	data, version, err := f.versioned(b, length0, length1)
	if err != nil {
		return err
	}
	id, matrix := id0, matrix0
	if version == 1 {
		id, matrix = id1, matrix1
	}
	const cell, one, width, height = 4, 1 << 16, 36, 40
	t := &f.tracks[len(f.tracks)-1]
	t.id = u32(data[id:])
	data = data[matrix:]
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
func lasting(units uint64, timescale uint32) time.Duration {
	if timescale == 0 {
		return 0
	}
	seconds := float64(units) / float64(timescale)
	if seconds > longest.Seconds() {
		return longest + 1
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}
