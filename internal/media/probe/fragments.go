// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "math/bits"

type fragments struct {
	// timed are the samples with an explicit duration, set for the sample or for its fragment.
	timed samples
	// plain counts the samples with the track's default duration, usual.
	plain float64
	usual uint32
}

func (f *fragments) addTo(all *samples) {
	if all.count == 0 {
		*all = f.timed
	} else if f.timed.count > 0 {
		all.count, all.units, all.other = all.count+f.timed.count, all.units+f.timed.units, all.other+f.timed.other
	}
	if f.plain > 0 {
		all.add(f.plain, float64(f.usual))
	}
}

// fragmentsOf returns the record of a track's fragments.
func (f *film) fragmentsOf(id uint32) (*fragments, error) {
	if recorded := f.fragments[id]; recorded != nil {
		return recorded, nil
	}
	if len(f.fragments) == maxTracks {
		return nil, errTooWide
	}
	noted := &fragments{}
	f.fragments[id] = noted
	return noted, nil
}

// extent reads mehd, the duration of a video including its fragments (ISO 14496-12, section 8.8.2).
func (f *film) extent(b box) error {
	data, wide, err := f.versioned(b, 4, 1)
	if err == nil {
		f.parted = float64(number(data[4:], wide))
	}
	return err
}

// defaults reads trex, the defaults for all of a track's fragments (ISO 14496-12, section 8.8.3).
func (f *film) defaults(b box) error {
	const id, duration, length = 4, 12, 16
	data, err := f.fields(b, length)
	if err != nil {
		return err
	}
	recorded, err := f.fragmentsOf(u32(data[id:]))
	if err == nil {
		recorded.usual = u32(data[duration:])
	}
	return err
}

type run struct {
	of *fragments
	// usual is the default sample duration if explicit is set; otherwise the track's default applies.
	usual    uint32
	explicit bool
}

func (r *run) add(samples float64) {
	if r.explicit {
		r.of.timed.add(samples, float64(r.usual))
	} else {
		r.of.plain += samples
	}
}

// readFragmentHeader reads tfhd, one track's header in one fragment (ISO 14496-12, section 8.8.7).
func (f *film) readFragmentHeader(b box) error {
	const (
		id, fixed = 4, 8
		// The flags determine which of the following fields are present, in this order.
		hasOffset, hasDescription, hasDuration = 0x1, 0x2, 0x8
		offsetLength, descriptionLength        = 8, 4
		// isEmpty marks a duration without samples, as long as one sample would be.
		isEmpty = 0x10000
	)
	data, err := f.fields(b, fixed)
	if err != nil {
		return err
	}
	flags := u32(data) // The version precedes them and has no such bits.
	if f.run.of, err = f.fragmentsOf(u32(data[id:])); err != nil {
		return err
	}
	if flags&hasDuration != 0 {
		at := fixed
		if flags&hasOffset != 0 {
			at += offsetLength
		}
		if flags&hasDescription != 0 {
			at += descriptionLength
		}
		if data, err = f.fields(b, at+4); err != nil {
			return err
		}
		f.run.usual, f.run.explicit = u32(data[at:]), true
	}
	if flags&isEmpty != 0 {
		f.run.add(1)
	}
	return nil
}

// readFragmentSamples reads trun, a run of consecutive samples (ISO 14496-12, section 8.8.8).
func (f *film) readFragmentSamples(b box) error {
	const (
		count, fixed = 4, 8
		// Flags for fields before the samples.
		hasOffset, hasFirst = 0x1, 0x4
		// Flags for the fields of each sample, which take one word each. The duration comes first.
		hasDuration, ofSamples = 0x100, 0xf00
		word                   = 4
	)
	if f.run.of == nil {
		return errNoOrder
	}
	data, err := f.fields(b, fixed)
	if err != nil {
		return err
	}
	flags, samples := u32(data), u32(data[count:])
	if flags&hasDuration == 0 {
		f.run.add(float64(samples))
		return nil
	}
	at := b.start + fixed + int64(word*bits.OnesCount32(flags&(hasOffset|hasFirst)))
	length := int64(word * bits.OnesCount32(flags&ofSamples))
	return f.entries(b, at, int64(samples), length, func(sample []byte) {
		f.run.of.timed.add(1, float64(u32(sample)))
	})
}

// segments adds up the durations in a segment index (ISO 14496-12, section 8.16.3).
func (f *film) segments(b box) error {
	const (
		id, scale, fixed = 4, 8, 16
		duration, length = 4, 12
		// isIndex marks a reference to an index, whose own references are counted.
		isIndex = 1 << 31
	)
	data, _, err := f.versioned(b, fixed, 2)
	if err != nil {
		return err
	}
	at, subject, timescale := len(data), u32(data[id:]), u32(data[scale:])
	if _, known := f.indexed[subject]; !known && len(f.indexed) == maxTracks {
		return errTooWide
	}
	var units float64
	err = f.entries(b, b.start+int64(at), int64(u16(data[at-2:])), length, func(reference []byte) {
		if u32(reference)&isIndex == 0 {
			units += float64(u32(reference[duration:]))
		}
	})
	if err != nil {
		return err
	}
	f.indexed[subject] = min(f.indexed[subject]+lasting(units, timescale), longest+1)
	return nil
}
