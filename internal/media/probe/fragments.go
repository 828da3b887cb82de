// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"math"
	"math/bits"
)

// fragments is what a track has in fragments.
type fragments struct {
	// units is how long the samples with a duration of their own last.
	units uint64
	// plain counts the samples with the track's default duration, and usual is
	// that duration.
	plain uint64
	usual uint32
}

// fragmentsOf returns the record of a track's fragments.
func (f *film) fragmentsOf(id uint32) (*fragments, error) {
	if noted := f.fragments[id]; noted != nil {
		return noted, nil
	}
	if len(f.fragments) == maxTracks {
		return nil, errTooWide
	}
	noted := &fragments{}
	f.fragments[id] = noted
	return noted, nil
}

// extend is called for each box in mvex, which says what holds for all
// fragments (ISO 14496-12, sections 8.8.2 and 8.8.3).
func (f *film) extend(b box) error {
	switch string(b.kind[:]) {
	case "mehd":
		const value, length0, length1 = 4, 8, 12
		data, version, err := f.versioned(b, length0, length1)
		if err != nil {
			return err
		}
		if version == 1 {
			f.parted = u64(data[value:])
		} else {
			f.parted = uint64(u32(data[value:]))
		}
	case "trex":
		const id, duration, length = 4, 12, 16
		data, err := f.fields(b, length)
		if err != nil {
			return err
		}
		noted, err := f.fragmentsOf(u32(data[id:]))
		if err != nil {
			return err
		}
		noted.usual = u32(data[duration:])
	}
	return nil
}

// fragment is called for each box in moof.
func (f *film) fragment(b box) error {
	if string(b.kind[:]) != "traf" {
		return nil
	}
	var here run
	return f.within(b, func(b box) error {
		switch string(b.kind[:]) {
		case "tfhd":
			return f.begin(b, &here)
		case "trun":
			return f.run(b, &here)
		}
		return nil
	})
}

// run is what holds for the samples of one track in one fragment.
type run struct {
	of *fragments
	// usual is the default duration of a sample if told is set; otherwise the
	// track's default holds.
	usual uint32
	told  bool
}

// add counts samples without a duration of their own.
func (r *run) add(samples uint64) {
	if r.told {
		r.of.units = plus(r.of.units, times(samples, r.usual))
	} else {
		r.of.plain = plus(r.of.plain, samples)
	}
}

// begin reads tfhd, the header of one track in one fragment (ISO 14496-12,
// section 8.8.7).
func (f *film) begin(b box, here *run) error {
	const (
		id, fixed = 4, 8
		// The flags tell which fields follow, in this order.
		hasOffset, hasDescription, hasDuration = 0x1, 0x2, 0x8
		offsetLength, descriptionLength        = 8, 4
		// isEmpty marks a time without samples, as long as one sample.
		isEmpty = 0x10000
	)
	data, err := f.fields(b, fixed)
	if err != nil {
		return err
	}
	flags := u32(data) // The version in front of them has no such bits.
	if here.of, err = f.fragmentsOf(u32(data[id:])); err != nil {
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
		here.usual, here.told = u32(data[at:]), true
	}
	if flags&isEmpty != 0 {
		here.add(1)
	}
	return nil
}

// run reads trun, samples that follow one another (ISO 14496-12, section
// 8.8.8).
func (f *film) run(b box, here *run) error {
	const (
		count, fixed = 4, 8
		// Flags of fields that stand before the samples.
		hasOffset, hasFirst = 0x1, 0x4
		// Flags of the fields of each sample, each a word; the duration comes
		// first.
		hasDuration, ofSamples = 0x100, 0xf00
		word                   = 4
	)
	if here.of == nil {
		return errNoOrder
	}
	data, err := f.fields(b, fixed)
	if err != nil {
		return err
	}
	flags, samples := u32(data), u32(data[count:])
	if flags&hasDuration == 0 {
		here.add(uint64(samples))
		return nil
	}
	at := b.start + fixed + int64(word*bits.OnesCount32(flags&(hasOffset|hasFirst)))
	length := int64(word * bits.OnesCount32(flags&ofSamples))
	return f.entries(b, at, int64(samples), length, func(sample []byte) {
		here.of.units = plus(here.of.units, uint64(u32(sample)))
	})
}

// segments adds up what an index of segments says (ISO 14496-12, section
// 8.16.3).
func (f *film) segments(b box) error {
	const (
		id, scale, length0, length1 = 4, 8, 24, 32
		duration, length            = 4, 12
		// isIndex marks a reference to an index, whose own references are
		// counted.
		isIndex = 1 << 31
	)
	data, version, err := f.versioned(b, length0, length1)
	if err != nil {
		return err
	}
	at, subject, timescale := length0, u32(data[id:]), u32(data[scale:])
	if version == 1 {
		at = length1
	}
	if _, known := f.indexed[subject]; !known && len(f.indexed) == maxTracks {
		return errTooWide
	}
	var units uint64
	err = f.entries(b, b.start+int64(at), int64(u16(data[at-2:])), length, func(reference []byte) {
		if u32(reference)&isIndex == 0 {
			units += uint64(u32(reference[duration:]))
		}
	})
	if err != nil {
		return err
	}
	f.indexed[subject] = min(f.indexed[subject]+lasting(units, timescale), longest+1)
	return nil
}

// samples adds up how long all samples of a track last, in its units: those in
// its table, and those in fragments.
func (f *film) samples(t *track) (uint64, error) {
	const count, fixed, delta, length = 4, 8, 4, 8
	var units uint64
	if t.times != (box{}) {
		data, err := f.fields(t.times, fixed)
		if err != nil {
			return 0, err
		}
		err = f.entries(t.times, t.times.start+fixed, int64(u32(data[count:])), length, func(entry []byte) {
			units = plus(units, times(uint64(u32(entry)), u32(entry[delta:])))
		})
		if err != nil {
			return 0, err
		}
	}
	if noted := f.fragments[t.id]; noted != nil {
		units = plus(units, plus(noted.units, times(noted.plain, noted.usual)))
	}
	return units, nil
}

// plus and times saturate: a film that is too long is refused and must not come
// out short.
func plus(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

func times(a uint64, b uint32) uint64 {
	high, low := bits.Mul64(a, uint64(b))
	if high != 0 {
		return math.MaxUint64
	}
	return low
}
