// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"strings"
)

// Markers of a JPEG, after the byte 0xff (ITU-T T.81, table B.1).
const (
	jpegStuffed = 0x00 // not a marker: 0xff as a value
	jpegTEM     = 0x01
	jpegRST0    = 0xd0 // the first marker without a length
	jpegEOI     = 0xd9 // the last one, which ends the picture
	jpegAPP1    = 0xe1
	jpegAPP6    = 0xe6
	jpegAPP13   = 0xed
	jpegMark    = 0xff
)

// goProName is the prefix of GoPro's metadata in photos. Videos have this metadata in a track.
const goProName = "GoPro\x00"

// maxAppended limits the pictures and videos after the first one. Photos have three.
const maxAppended = 1000

// cleanAppended cleans all pictures and videos after the first one. Cameras append larger previews, gain maps, and the
// video of a motion photo, each with its own metadata.
func (c *cleaner) cleanAppended(at int64) {
	const picture, film, reach = "\xff\xd8\xff", "ftyp", 4
	for range maxAppended {
		found := c.search(span{at, c.file.Size()}, picture, film)
		switch {
		case found.kind == "" || c.ended():
			return
		case found.kind == film:
			// The length of a box precedes its name.
			at = max(c.film(span{max(at, found.at-reach), c.file.Size()}), found.at+reach)
		default:
			at = c.picture(found.at)
		}
	}
	c.failf("has more than %d pictures or films after the first, each of which may contain a location", maxAppended)
}

type hit struct {
	at   int64
	kind string
}

const longestMark = len(pngEnd)

func (c *cleaner) search(in span, one, other string) hit {
	const step = 32 << 10
	reach := max(len(one), len(other)) - 1 // A mark may span two steps.
	if c.buffer == nil {
		c.buffer = make([]byte, step+longestMark)
	}
	for at := in.start; at < in.end; at += step {
		data := c.buffer[:min(int64(step+reach), in.end-at)]
		if !c.read(data, at) {
			return hit{}
		}
		best := hit{}
		for _, mark := range []string{one, other} {
			if i := bytes.Index(data, []byte(mark)); i >= 0 && (best.kind == "" || at+int64(i) < best.at) {
				best = hit{at + int64(i), mark}
			}
		}
		if best.kind != "" {
			return best
		}
	}
	return hit{}
}

func (c *cleaner) picture(at int64) (end int64) {
	r := &jpegReader{from: bufio.NewReader(io.NewSectionReader(c.file, at, c.file.Size()-at)), at: at}
	m := jpegMetadata{cleaner: c, extended: map[string][]extension{}}
	defer m.finish()
	for {
		marker, ok := r.marker()
		switch {
		case !ok, marker == jpegEOI:
			return r.at
		case marker == jpegTEM, marker >= jpegRST0 && marker < jpegEOI:
			continue
		}
		found, name, ok := r.segment()
		if !ok || c.ended() {
			return r.at
		}
		m.read(marker, found, name)
	}
}

type jpegMetadata struct {
	*cleaner

	// resources and extended may be spread over several segments.
	resources part
	extended  map[string][]extension
}

// extension is a part of a long XMP, with its offset in the whole.
type extension struct {
	offset uint32
	span
}

// read cleans a segment's metadata, or stores its position until all parts have been found.
func (m *jpegMetadata) read(marker byte, segment span, name string) {
	after := func(head string) span { return span{segment.start + int64(len(head)), segment.end} }
	switch {
	case marker == jpegAPP1 && strings.HasPrefix(name, exifName):
		m.edit(part{segment}, cleanExif)
	case marker == jpegAPP1 && strings.HasPrefix(name, xmpName):
		m.xmp(part{after(xmpName)})
	case marker == jpegAPP1 && strings.HasPrefix(name, extendedName):
		m.extend(after(extendedName))
	case marker == jpegAPP13 && strings.HasPrefix(name, photoshopName):
		m.resources = append(m.resources, after(photoshopName))
	case marker == jpegAPP6 && strings.HasPrefix(name, goProName):
		m.edit(part{after(goProName)}, cleanTelemetry)
	}
}

// extend records a part of a long XMP: 32 letters that identify the XMP, its length, and the part's offset.
func (m *jpegMetadata) extend(segment span) {
	const name, offset, head, most = 32, 36, 40, 1024
	var data [head]byte
	if segment.length() < head || !m.cleaner.read(data[:], segment.start) {
		return
	}
	key := string(data[:name])
	if len(m.extended) < most && len(m.extended[key]) < most {
		m.extended[key] = append(m.extended[key], extension{binary.BigEndian.Uint32(data[offset:]), span{segment.start + head, segment.end}})
	}
}

func (m *jpegMetadata) finish() {
	if len(m.resources) > 0 {
		m.edit(m.resources, func(data []byte) { cleanResources(data, true) })
	}
	for _, extensions := range m.extended {
		slices.SortStableFunc(extensions, func(a, b extension) int { return cmp.Compare(a.offset, b.offset) })
		var whole part
		for _, e := range extensions {
			whole = append(whole, e.span)
		}
		m.xmp(whole)
	}
}

// cleanTelemetry clears a camera's measurements if they include locations.
func cleanTelemetry(data []byte) {
	if bytes.Contains(data, []byte("GPS")) {
		clear(data)
	}
}

type jpegReader struct {
	from *bufio.Reader
	at   int64
}

func (r *jpegReader) byte() (byte, bool) {
	b, err := r.from.ReadByte()
	if err == nil {
		r.at++
	}
	return b, err == nil
}

// marker advances to the next marker, skipping pixels and bytes between two parts.
func (r *jpegReader) marker() (byte, bool) {
	for {
		if !r.skipTo(jpegMark) {
			return 0, false
		}
		for {
			b, ok := r.byte()
			if !ok {
				return 0, false
			}
			if b == jpegStuffed {
				break
			}
			if b != jpegMark {
				return b, true
			}
		}
	}
}

func (r *jpegReader) skipTo(value byte) bool {
	for {
		if _, err := r.from.Peek(1); err != nil {
			return false
		}
		data, _ := r.from.Peek(r.from.Buffered())
		i := bytes.IndexByte(data, value)
		n := i + 1
		if i < 0 {
			n = len(data)
		}
		_, _ = r.from.Discard(n) // already buffered
		r.at += int64(n)
		if i >= 0 {
			return true
		}
	}
}

// segment skips the content of the part whose marker was just read, and returns its position and its first bytes.
func (r *jpegReader) segment() (found span, name string, ok bool) {
	const itself, longestName = 2, len(extendedName) // The length includes its own two bytes.
	high, _ := r.byte()
	low, ok := r.byte()
	length := int(high)<<8 | int(low)
	if !ok || length < itself {
		return span{}, "", false
	}
	found = span{r.at, r.at + int64(length-itself)}
	if start, err := r.from.Peek(min(longestName, length-itself)); err == nil {
		name = string(start)
	}
	n, err := r.from.Discard(length - itself)
	r.at += int64(n)
	return found, name, err == nil
}
