// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mediaprobe

import (
	"bufio"
	"io"
)

// Markers of a JPEG, behind the byte 0xff (ITU-T T.81, table B.1).
const (
	jpegStuffed = 0x00 // no marker: 0xff as a value
	jpegTEM     = 0x01
	jpegRST0    = 0xd0 // the first of those without a length,
	jpegEOI     = 0xd9 // and the last of them, which ends the picture
	jpegSOS     = 0xda // the pixels begin
	jpegAPP1    = 0xe1
	jpegMark    = 0xff
)

// jpegExif is how metadata begins; others use the same marker.
const jpegExif = "Exif\x00\x00"

// jpegParts reads the parts of a JPEG up to its pixels. What ends the picture is
// looked for behind that: the picture within the metadata, which cameras put
// there for lists, has an end of its own.
func jpegParts(file *blocks) imageParts {
	var parts imageParts
	// No part is longer than 64 KiB: nothing would be saved by jumping.
	r := &jpegReader{from: bufio.NewReader(io.NewSectionReader(file, 0, file.size))}
	for {
		marker, ok := r.marker()
		switch {
		case !ok, marker == jpegEOI:
			return parts
		case marker == jpegTEM, marker >= jpegRST0 && marker <= jpegEOI:
			continue
		}
		segment, name, ok := r.segment()
		switch {
		case !ok:
			return parts
		case marker == jpegSOS:
			parts.whole = ends(file, segment.end, string([]byte{jpegMark, jpegEOI}))
			return parts
		case marker == jpegAPP1 && name == jpegExif && parts.exif == (span{}):
			parts.exif = segment
		}
	}
}

// jpegReader goes through the parts of a JPEG.
type jpegReader struct {
	from *bufio.Reader
	at   int64
}

func (r *jpegReader) byte() (byte, bool) {
	b, err := r.from.ReadByte()
	r.at++
	return b, err == nil
}

// marker goes to the next marker. As decoders do, it passes over what stands
// between.
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

// segment goes behind the content of the part whose marker was read, and
// returns where that is and how it begins.
func (r *jpegReader) segment() (found span, name string, ok bool) {
	high, _ := r.byte()
	low, ok := r.byte()
	length := int(high)<<8 | int(low)
	const itself = 2 // The length counts its own two bytes.
	if !ok || length < itself {
		return span{}, "", false
	}
	found = span{r.at, r.at + int64(length-itself)}
	if start, err := r.from.Peek(min(len(jpegExif), length-itself)); err == nil && string(start) == jpegExif {
		name = jpegExif
	}
	if _, err := r.from.Discard(length - itself); err != nil {
		return span{}, "", false
	}
	r.at = found.end
	return found, name, true
}
