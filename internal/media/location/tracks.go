// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"bytes"
	"encoding/binary"
	"regexp"
)

// track is one of a video's tracks, given by its sample tables (ISO 14496-12, sections 8.5 to 8.7). Missing tables are
// zero.
type track struct {
	id uint32
	// formats has the samples' encodings, sizes their lengths, chunks their number per chunk, and offsets the chunks'
	// positions.
	formats, sizes, chunks, offsets span
	// compact means that the numbers in sizes have fewer than 32 bits, and wide that those in offsets have 64.
	compact, wide bool
}

// record stores the position of a table. If there are two, the first applies.
func (t *track) record(b box) {
	table := map[string]*span{
		"stsd": &t.formats, "stsc": &t.chunks, "stsz": &t.sizes, "stz2": &t.sizes, "stco": &t.offsets, "co64": &t.offsets,
	}[b.kind]
	if *table != (span{}) {
		return
	}
	*table = b.span
	t.compact = t.compact || b.kind == "stz2"
	t.wide = t.wide || b.kind == "co64"
}

// placeFormats are the formats of samples that contain locations among a camera's other measurements: GoPro, Android
// (Camera Motion Metadata), DJI, Canon, and dashboard cameras.
var placeFormats = map[string]bool{"gpmd": true, "camm": true, "djmd": true, "dbgi": true, "CTMD": true, "gps0": true, "gps ": true, "GPS ": true}

// keyedFormats are the formats of samples whose description names their content.
var keyedFormats = map[string]bool{"mebx": true, "mett": true, "metx": true, "urim": true}

// writtenFormats are the formats of samples that may be text. Drones write their location as subtitles.
var writtenFormats = map[string]bool{"text": true, "tx3g": true, "sbtl": true, "wvtt": true, "stpp": true}

var (
	// writtenPlace matches a location in text, as written by DJI drones or by a GPS receiver (NMEA 0183).
	writtenPlace = regexp.MustCompile(`(?i)gps\s*[(:]|\b(lat|latitude|long?t?itude)\s*[:=]|\$G[A-Z](RMC|GGA)`)
	// sonyPlace is the version at the start of the locations in measurements by Sony cameras.
	sonyPlace = []byte{0x85, 0x00, 0x00, 0x04}
)

const (
	// longestFormats limits the number of bytes read from a track's sample description.
	longestFormats = 64 << 10
	// sampledChunks is the number of chunks that are searched for text, and sampledLength the number of bytes of each.
	sampledChunks, sampledLength = 8, 4 << 10
	// descriptionHead is the length of the head of a description table.
	descriptionHead = 8
)

// hasPlaces reports whether a track's samples are locations. It renames the format of such samples to "free", so that
// the zeros are not interpreted as samples.
func (f *film) hasPlaces(t *track) (found bool) {
	at := t.formats.start + descriptionHead
	for number := uint32(0); number < min(f.word(t.formats, 4), maxTracks) && t.formats.end-at >= boxHeader; number++ {
		entry, ok := f.box(at, t.formats.end)
		if !ok {
			break
		}
		switch isPlace, rename := f.format(t, entry); {
		case rename:
			f.found.replace(entry.at+4, []byte("free"))
			found = true
		case isPlace:
			found = true
		}
		at = entry.end
	}
	return found
}

// format reports whether samples in this format are locations, and whether to rename the format.
func (f *film) format(t *track, entry box) (isPlace, rename bool) {
	switch {
	case placeFormats[entry.kind]:
		return true, true
	case keyedFormats[entry.kind]:
		data := make([]byte, min(entry.length(), longestFormats))
		isPlace = f.read(data, entry.start) && namesPlace(string(data))
		return isPlace, isPlace
	case entry.kind == "rtmd":
		return f.samplesMatch(t, func(data []byte) bool { return bytes.Contains(data, sonyPlace) }), false
	case writtenFormats[entry.kind]:
		return f.samplesMatch(t, writtenPlace.Match), false
	default:
		return false, false
	}
}

func (f *film) samplesMatch(t *track, place func([]byte) bool) (found bool) {
	left := sampledChunks
	f.samples(t, func(at, length int64) bool {
		for _, s := range f.within(at, min(length, sampledLength)) {
			data := make([]byte, s.length())
			found = found || f.read(data, s.start) && place(data)
		}
		left--
		return !found && left > 0
	})
	return found
}

func (f *film) empty(t *track) {
	f.samples(t, func(at, length int64) bool {
		f.zero(at, length)
		return !f.ended() && !f.found.over
	})
}

// zero fills a span among the frames with zeros; at is an offset in the video.
func (f *film) zero(at, length int64) {
	for _, s := range f.within(at, length) {
		f.found.fill(s, 0)
	}
}

// within returns the file position of samples at an offset in the video. Data outside the frames is not a sample.
func (f *film) within(at, length int64) (found []span) {
	wanted := span{f.whole.start + at, f.whole.start + at + length}
	if at < 0 || length <= 0 || wanted.end < wanted.start {
		return nil
	}
	for _, m := range f.mediaFrom(wanted.start) {
		if m.start >= wanted.end {
			break
		}
		found = append(found, span{max(wanted.start, m.start), min(wanted.end, m.end)})
	}
	return found
}

// samples visits a track's chunks, with the position of each in the video and its length.
func (f *film) samples(t *track, visit func(at, length int64) bool) {
	const head, chunkEntry = 8, 12
	sizes := sizesOf(f, t)
	wide := int64(4)
	if t.wide {
		wide = 8
	}
	count := min(int64(f.word(t.offsets, 4)), (t.offsets.length()-head)/wide)
	runs := min(int64(f.word(t.chunks, 4)), (t.chunks.length()-head)/chunkEntry)
	run, each, next := int64(0), int64(0), int64(1)
	for chunk := int64(1); chunk <= count && !f.ended(); chunk++ {
		for chunk >= next && run < runs {
			each = int64(f.word(t.chunks, head+run*chunkEntry+4))
			run++
			if run < runs {
				next = int64(f.word(t.chunks, head+run*chunkEntry))
			}
		}
		length := sizes.sum(each)
		var offset [8]byte
		if !f.read(offset[8-wide:], t.offsets.start+head+(chunk-1)*wide) {
			return
		}
		at := binary.BigEndian.Uint64(offset[:])
		if at > uint64(f.whole.length()) || length <= 0 { //nolint:gosec // a length is not negative
			continue
		}
		if !visit(int64(at), min(length, f.whole.length()-int64(at))) { //nolint:gosec // it is within the film
			return
		}
	}
}

type sampleSizes struct {
	film  *film
	table span
	// all is the length of every sample, or zero if each sample has a separate length, stored in the given number of
	// bits.
	all, bits int64
	next, end int64
}

func sizesOf(f *film, t *track) *sampleSizes {
	s := &sampleSizes{film: f, table: t.sizes, end: int64(f.word(t.sizes, 8))}
	if s.all, s.bits = int64(f.word(t.sizes, 4)), 32; t.compact {
		s.all, s.bits = 0, s.all&0xff
	}
	const head = 12
	if s.all == 0 {
		if s.bits != 4 && s.bits != 8 && s.bits != 16 && s.bits != 32 {
			s.end = 0
			return s
		}
		s.end = min(s.end, (t.sizes.length()-head)*8/s.bits)
	}
	return s
}

func (s *sampleSizes) sum(count int64) (length int64) {
	const head = 12
	count = min(count, s.end-s.next)
	if s.all != 0 {
		s.next += count
		return count * s.all
	}
	var data [4]byte
	for ; count > 0 && !s.film.ended(); count-- {
		bit := s.next * s.bits
		value := data[:max(s.bits/8, 1)]
		if !s.film.read(value, s.table.start+head+bit/8) {
			return length
		}
		size := int64(0)
		for _, b := range value {
			size = size<<8 | int64(b)
		}
		if s.bits == 4 {
			size = size >> (4 - bit%8) & 0xf
		}
		length += size
		s.next++
	}
	return length
}
