// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mediaprobe

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/abema/go-mp4"
)

const (
	// maxBoxes is how many boxes a film's structure may have; real ones have
	// some hundred, and fragmented ones some thousand.
	maxBoxes = 100_000
	// longest is longer than what any platform takes. A file that claims more
	// is damaged.
	longest = 30 * 24 * time.Hour
	// notKnown is the duration of a film of version 0 that does not say it (ISO
	// 14496-12, section 8.2.2).
	notKnown = math.MaxUint32
)

// The parts of an ISO media file that are read, and those that lead to them.
var (
	boxMvhd = mp4.StrToBoxType("mvhd")
	boxMehd = mp4.StrToBoxType("mehd")
	boxTkhd = mp4.StrToBoxType("tkhd")
	boxHdlr = mp4.StrToBoxType("hdlr")
	boxSidx = mp4.StrToBoxType("sidx")
	boxMdat = mp4.StrToBoxType("mdat")
	boxMoov = mp4.StrToBoxType("moov")
	boxMoof = mp4.StrToBoxType("moof")
	boxTrak = mp4.StrToBoxType("trak")

	parents = map[mp4.BoxType]bool{
		boxMoov: true, boxTrak: true, mp4.StrToBoxType("mdia"): true, mp4.StrToBoxType("mvex"): true,
	}
)

// film is what the boxes of an MP4 or QuickTime file tell.
type film struct {
	size                int64
	boxes               int
	media, index, parts bool
	timescale           uint32
	// whole is the duration of the film and parted that of its fragments, in
	// units of the timescale.
	whole, parted uint64
	// indexed is the duration that segment indexes give, by what they index.
	indexed map[uint32]time.Duration
	tracks  []track
}

type track struct {
	video         bool
	width, height float64
	turned        bool
}

var (
	errCutOff   = errors.New("a part of it reaches beyond its end")
	errTooMany  = errors.New("it has too many parts")
	errNoTracks = errors.New("a part of a track stands outside of any")
)

// video examines an MP4 or QuickTime film by its boxes, without its frames.
func video(file *blocks, size int64) (Facts, error) {
	f := film{size: size, indexed: map[uint32]time.Duration{}}
	_, err := mp4.ReadBoxStructure(io.NewSectionReader(file, 0, size), f.visit)
	switch {
	case errors.Is(err, errCutOff) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return Facts{}, damaged("The video is cut off: a part of it reaches beyond its end. Upload the whole file.")
	case err != nil:
		return Facts{}, damaged("The video is damaged: its structure cannot be read (%v). Export it again.", err)
	case !f.index:
		return Facts{}, damaged("The video is damaged or cut off: the part that describes it (moov) is missing. Upload the whole file, or export it again.")
	case !f.media:
		return Facts{}, damaged("The video is damaged or cut off: it has no frames (mdat). Upload the whole file, or export it again.")
	}
	facts, err := f.picture()
	if err != nil {
		return Facts{}, err
	}
	facts.Duration, err = f.duration(file)
	return facts, err
}

// visit is called for each box, in the order of the file.
func (f *film) visit(h *mp4.ReadHandle) (any, error) {
	f.boxes++
	if f.boxes > maxBoxes {
		return nil, errTooMany
	}
	// A size that is so large that the end of the box cannot be told is beyond
	// the file's end all the same.
	if h.BoxInfo.Size > uint64(f.size) || h.BoxInfo.Offset+h.BoxInfo.Size > uint64(f.size) { //nolint:gosec // a file's size is not negative
		return nil, errCutOff
	}
	switch kind := h.BoxInfo.Type; kind {
	case boxMdat:
		f.media = true
	case boxMoof:
		f.parts = true
	case boxMvhd, boxMehd, boxTkhd, boxHdlr, boxSidx:
		return nil, f.take(h)
	default:
		if parents[kind] {
			f.index = f.index || kind == boxMoov
			if kind == boxTrak {
				f.tracks = append(f.tracks, track{})
			}
			return h.Expand()
		}
	}
	return nil, nil //nolint:nilnil // nobody asks what comes of a box
}

// take notes what a box says.
func (f *film) take(h *mp4.ReadHandle) error {
	payload, _, err := h.ReadPayload()
	if err != nil {
		return err
	}
	switch box := payload.(type) {
	case *mp4.Mvhd:
		f.timescale, f.whole = box.Timescale, box.GetDuration()
		if box.GetVersion() == 0 && f.whole == notKnown {
			f.whole = 0
		}
	case *mp4.Mehd:
		f.parted = uint64(box.FragmentDurationV0)
		if box.GetVersion() == 1 {
			f.parted = box.FragmentDurationV1
		}
	case *mp4.Sidx:
		for _, r := range box.References {
			// The other kind refers to an index, whose own references are
			// counted.
			if !r.ReferenceType {
				sum := f.indexed[box.ReferenceID] + lasting(uint64(r.SubsegmentDuration), box.Timescale)
				f.indexed[box.ReferenceID] = min(sum, longest+1)
			}
		}
	case *mp4.Tkhd:
		t, err := f.track()
		if err != nil {
			return err
		}
		t.width, t.height = box.GetWidth(), box.GetHeight()
		// The matrix turns to the side when its diagonal is empty.
		t.turned = box.Matrix[0] == 0 && box.Matrix[4] == 0 && box.Matrix[1] != 0
	case *mp4.Hdlr:
		// QuickTime has a second one, of the data, elsewhere.
		if t, err := f.track(); err == nil && string(box.HandlerType[:]) == "vide" {
			t.video = true
		}
	}
	return nil
}

// track is the one that is being read.
func (f *film) track() (*track, error) {
	if len(f.tracks) == 0 {
		return nil, errNoTracks
	}
	return &f.tracks[len(f.tracks)-1], nil
}

// picture returns the size of the first picture that moves.
func (f *film) picture() (Facts, error) {
	for _, t := range f.tracks {
		if !t.video {
			continue
		}
		width, height := math.Round(t.width), math.Round(t.height)
		if width < 1 || height < 1 {
			continue
		}
		if t.turned {
			width, height = height, width
		}
		return Facts{Width: int32(width), Height: int32(height)}, nil
	}
	return Facts{}, damaged("The file shows no moving picture: it has no video track. Upload a video.")
}

// duration returns how long the film plays. One in fragments says so in a
// place of its own, or only by its fragments.
func (f *film) duration(file *blocks) (time.Duration, error) {
	long := lasting(f.whole, f.timescale)
	if long == 0 {
		long = lasting(f.parted, f.timescale)
	}
	for _, indexed := range f.indexed {
		if f.whole == 0 && f.parted == 0 {
			long = max(long, indexed)
		}
	}
	if long == 0 && f.parts {
		long = fragments(io.NewSectionReader(file, 0, f.size))
	}
	switch {
	case long < time.Millisecond:
		return 0, damaged("The video is damaged: it does not say how long it plays. Export it again.")
	case long > longest:
		return 0, damaged("The video is damaged: it says that it plays for more than %d days. Export it again.", int(longest.Hours()/24))
	}
	return long, nil
}

// fragments adds up how long the fragments of the longest track play.
func fragments(r io.ReadSeeker) time.Duration {
	info, err := mp4.Probe(r)
	if err != nil {
		return 0
	}
	scale := map[uint32]uint32{}
	for _, t := range info.Tracks {
		scale[t.TrackID] = t.Timescale
	}
	units := map[uint32]uint64{}
	var long time.Duration
	for _, s := range info.Segments {
		units[s.TrackID] += uint64(s.Duration)
		long = max(long, lasting(units[s.TrackID], scale[s.TrackID]))
	}
	return long
}

// lasting is a number of units as a duration; what is longer than the longest
// is just over it.
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
