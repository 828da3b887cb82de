// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"math"
	"time"
)

// A video's picture and duration follow from its tracks: their samples and the entries that describe them. The headers
// of the video and of each track repeat these, but some programs leave them empty or wrong.

// facts returns the facts from a video's tracks, or the zero value if no track has a picture.
func (f *film) facts() (Facts, error) {
	for i := range f.tracks {
		t := &f.tracks[i]
		if !t.video {
			continue
		}
		facts, err := f.picture(t)
		if err != nil {
			return Facts{}, err
		}
		if facts.Width < 1 || facts.Height < 1 {
			continue
		}
		return f.playing(t, facts)
	}
	return Facts{}, nil
}

// checked returns the facts, or an error if a valid video cannot have them.
func (facts Facts) checked() (Facts, error) {
	switch {
	case facts.Width < 1 || facts.Height < 1:
		return Facts{}, damaged("The file shows no moving picture: it has no video track. Upload a video.")
	case facts.Duration < time.Millisecond:
		return Facts{}, damaged("The video is damaged: it has no duration. Export it again.")
	case facts.Duration > longest:
		return Facts{}, damaged("The video is damaged: its duration is more than %d days. Export it again.", int(longest.Hours()/24))
	}
	return facts, nil
}

// picture returns a track's displayed size. For pixels that are not square, players keep rows and scale columns.
func (f *film) picture(t *track) (Facts, error) {
	e, err := f.visual(t)
	if err != nil {
		return Facts{}, err
	}
	width, height := t.width, t.height
	switch {
	case e.width < 1 || e.height < 1: // only the track's header has it
	case width >= 1 && height >= 1:
		width, height = e.height*width/height, e.height
	default:
		width, height = e.width*e.aspect, e.height
	}
	width, height = math.Round(width), math.Round(height)
	if t.turned {
		width, height = height, width
	}
	if width > math.MaxInt32 || height > math.MaxInt32 {
		return Facts{}, nil
	}
	return Facts{
		Width: int32(width), Height: int32(height), VideoCodec: e.codec, HDR: e.transfer == transferPQ || e.transfer == transferHLG,
	}, nil
}

// playing adds the duration of a video that shows the given track, its frame rate, and its sound codec.
func (f *film) playing(shown *track, facts Facts) (Facts, error) {
	samples, err := f.samples(shown)
	if err != nil {
		return Facts{}, err
	}
	facts.FrameRate, facts.FrameRateVaries = samples.rate(shown.timescale), samples.vary()
	if facts.Duration, err = f.duration(shown, samples); err != nil {
		return Facts{}, err
	}
	for i := range f.tracks {
		if t := &f.tracks[i]; t.sound {
			facts.AudioCodec, err = f.audio(t)
			return facts, err
		}
	}
	return facts, nil
}

// duration returns the duration of a video that shows the given track with the given samples. In a fragmented video, it
// comes from a box for that purpose, from the samples of its video track, or from an index. In any other video it comes
// from the samples, or from the headers if there is no table of samples.
func (f *film) duration(shown *track, samples samples) (time.Duration, error) {
	long := time.Duration(0)
	if f.parts {
		if long = lasting(f.parted, f.timescale); long == 0 {
			// The header may describe only the start of the video.
			long = max(lasting(f.whole, f.timescale), lasting(samples.units, shown.timescale))
		}
	} else {
		for i := range f.tracks {
			t := &f.tracks[i]
			if t != shown && !t.sound {
				continue
			}
			of, err := f.plays(t, samples, t == shown)
			if err != nil {
				return 0, err
			}
			long = max(long, of)
		}
	}
	if long == 0 {
		long = max(lasting(f.whole, f.timescale), lasting(f.parted, f.timescale))
	}
	if long == 0 {
		for _, indexed := range f.indexed {
			long = max(long, indexed)
		}
	}
	return long, nil
}

// plays returns a track's duration. An edit list selects parts of its samples, and the track's header has their total.
func (f *film) plays(t *track, known samples, isKnown bool) (time.Duration, error) {
	if t.edited && t.presented > 0 {
		return lasting(t.presented, f.timescale), nil
	}
	if !isKnown {
		var err error
		if known, err = f.samples(t); err != nil {
			return 0, err
		}
	}
	if long := lasting(known.units, t.timescale); long > 0 {
		return long, nil
	}
	return lasting(t.length, t.timescale), nil
}

// lasting converts units to a duration. A duration above longest becomes just over longest.
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

type samples struct {
	// count is the number of samples, and units is their total duration, in units of the track's timescale.
	count, units float64
	// first is the first sample's duration. other counts samples that are at least a quarter longer or shorter.
	first, other float64
}

func (s *samples) add(count, each float64) {
	const quarter = 4
	if s.count == 0 {
		s.first = each
	}
	s.count += count
	s.units += count * each
	if math.Abs(each-s.first) > s.first/quarter {
		s.other += count
	}
}

// rate returns the average number of samples per second, or zero if that is unknown.
func (s *samples) rate(timescale uint32) float64 {
	if s.units == 0 || s.count < 2 {
		return 0
	}
	return s.count * float64(timescale) / s.units
}

// vary reports whether samples differ in duration. One in a hundred may differ, as the last or the first often does.
func (s *samples) vary() bool {
	const share = 100
	return min(s.other, s.count-s.other)*share > s.count
}

// maxEntries limits the number of entries read from a table, to 8 MiB: two hours of frames with different durations, at
// 120 frames per second.
const maxEntries = 1 << 20

// samples returns a track's samples, both in its table and in fragments.
func (f *film) samples(t *track) (samples, error) {
	const count, fixed, delta, length = 4, 8, 4, 8
	var all samples
	if t.times != (box{}) {
		data, err := f.fields(t.times, fixed)
		if err != nil {
			return samples{}, err
		}
		if entries := u32(data[count:]); entries <= maxEntries {
			err = f.entries(t.times, t.times.start+fixed, int64(entries), length, func(entry []byte) {
				all.add(float64(u32(entry)), float64(u32(entry[delta:])))
			})
		}
		if err != nil {
			return samples{}, err
		}
	}
	if recorded := f.fragments[t.id]; recorded != nil {
		recorded.addTo(&all)
	}
	return all, nil
}
