// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/herald-social/herald/internal/media/store"
)

// Markers of a JPEG, after the byte 0xff (ITU-T T.81, table B.1).
const (
	jpegStuffed = 0x00 // not a marker: 0xff as a value
	jpegTEM     = 0x01
	jpegRST0    = 0xd0 // the first marker without a length
	jpegEOI     = 0xd9 // the last one, which ends the picture
	jpegSOS     = 0xda // start of the pixels
	jpegSOF0    = 0xc0 // start of a frame, from here to
	jpegSOF15   = 0xcf // this one, except the following three
	jpegDHT     = 0xc4 // which have other meanings
	jpegJPG     = 0xc8
	jpegDAC     = 0xcc
	jpegSOF55   = 0xf7 // start of a frame of JPEG-LS
	jpegDRI     = 0xdd
	jpegAPP1    = 0xe1
	jpegAPP2    = 0xe2
	jpegAPP14   = 0xee
	jpegMark    = 0xff

	jpegRestarts = 8 // the number of restart markers, from jpegRST0
)

// Prefixes of metadata and of a color profile's parts; other data uses the same markers. Two bytes after a profile's
// name count its parts. In Adobe's part, the byte at adobeTransform shows whether colors were transformed.
const (
	jpegAdobe      = "Adobe"
	adobeTransform = 11
	jpegExif       = "Exif\x00\x00"
	jpegProfile    = "ICC_PROFILE\x00"
	jpegSeveral    = "MPF\x00"
	profileHead    = len(jpegProfile) + 2
)

// jpegParts reads the parts of a JPEG up to its pixels.
func jpegParts(file *store.BlockReader) imageParts {
	var parts imageParts
	var profile []profilePart
	// Parts are at most 64 KiB long, so seeking would save nothing.
	r := &jpegReader{from: bufio.NewReader(io.NewSectionReader(file, 0, file.Size()))}
	for {
		marker, ok := r.marker()
		switch {
		case !ok, marker == jpegEOI:
			return parts
		case marker == jpegTEM, marker >= jpegRST0 && marker <= jpegEOI:
			continue
		}
		segment, name, ok := r.segment()
		if !ok {
			return parts
		}
		if marker == jpegSOS {
			parts.profile = inOrder(profile)
			parts.scan, parts.pixels = segment, segment.end
			return parts
		}
		if marker == jpegAPP2 && strings.HasPrefix(name, jpegProfile) && segment.end-segment.start > int64(profileHead) {
			profile = append(profile, profilePart{name[profileHead-2], name[profileHead-1], span{segment.start + int64(profileHead), segment.end}})
			continue
		}
		parts.record(marker, segment, name)
	}
}

func (p *imageParts) record(marker byte, segment span, name string) {
	switch {
	case marker == jpegAPP1 && strings.HasPrefix(name, jpegExif) && p.exif == (span{}):
		p.exif = segment
	case marker == jpegAPP2 && strings.HasPrefix(name, jpegSeveral):
		p.several = true
	case marker == jpegAPP14 && strings.HasPrefix(name, jpegAdobe) && len(name) > adobeTransform:
		p.adobe, p.unchanged = true, name[adobeTransform] == 0
	case marker == jpegDHT || marker == jpegDRI:
		p.tables = appendTable(p.tables, jpegTable{marker, segment})
	case startsFrame(marker):
		p.frame, p.frameKind = segment, marker
	}
}

// profilePart is a part of a color profile: its number, counting from one, and the total number of parts.
type profilePart struct {
	number, count byte
	span
}

// inOrder returns a color profile's parts in numerical order, which may differ from their order in the file (ICC.1,
// annex B.4). Like libjpeg, it returns none if one is missing or occurs twice.
func inOrder(parts []profilePart) []span {
	slices.SortStableFunc(parts, func(a, b profilePart) int { return cmp.Compare(a.number, b.number) })
	spans := make([]span, 0, len(parts))
	for i, part := range parts {
		if int(part.number) != i+1 || int(part.count) != len(parts) {
			return nil
		}
		spans = append(spans, part.span)
	}
	return spans
}

func startsFrame(marker byte) bool {
	return marker == jpegSOF55 || marker >= jpegSOF0 && marker <= jpegSOF15 && marker != jpegDHT && marker != jpegJPG && marker != jpegDAC
}

type jpegReader struct {
	from *bufio.Reader
	at   int64
}

func (r *jpegReader) byte() (byte, bool) {
	b, err := r.from.ReadByte()
	r.at++
	return b, err == nil
}

// marker advances to the next marker. Like decoders, it ignores bytes between parts.
func (r *jpegReader) marker() (byte, bool) {
	for last := byte(0); ; {
		b, ok := r.byte()
		if !ok {
			return 0, false
		}
		if last == jpegMark && b != jpegMark && b != jpegStuffed {
			return b, true
		}
		last = b
	}
}

// segment skips the content of the part whose marker was just read, and returns its position and its first bytes.
func (r *jpegReader) segment() (found span, name string, ok bool) {
	high, _ := r.byte()
	low, ok := r.byte()
	length := int(high)<<8 | int(low)
	const itself = 2 // The length includes its own two bytes.
	if !ok || length < itself {
		return span{}, "", false
	}
	found = span{r.at, r.at + int64(length-itself)}
	if start, err := r.from.Peek(min(profileHead, length-itself)); err == nil {
		name = string(start)
	}
	if _, err := r.from.Discard(length - itself); err != nil {
		return span{}, "", false
	}
	r.at = found.end
	return found, name, true
}
