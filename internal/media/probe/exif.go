// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

// Of all metadata only the orientation is read, and here and not by a library:
// metadata is a graph that its author draws, and a file of a few megabytes can keep
// a library that follows it busy for minutes.

// The values of the EXIF tag Orientation that stand for a turn by 90 or 270
// degrees, mirrored or not (EXIF 2.32, section 4.6.4).
const firstTurned, lastTurned = 5, 8

// turned reports whether an image is shown turned by 90 or 270 degrees. Metadata
// that cannot be read turns nothing: viewers ignore it too.
func turned(file *blocks, exif span) bool {
	value, _ := orientation(file, exif)
	return value >= firstTurned && value <= lastTurned
}

// orientation looks for the tag in the first directory of the metadata, which
// has the form of a TIFF file (TIFF 6.0, section 2).
func orientation(file *blocks, exif span) (value uint16, ok bool) {
	const (
		header, entryLength = 8, 12
		tag, isShort        = 0x0112, 3
	)
	var buffer [entryLength]byte
	read := func(at int64, length int) bool {
		if at < exif.start || at+int64(length) > exif.end {
			return false
		}
		_, err := file.ReadAt(buffer[:length], at)
		return err == nil
	}
	// JPEG demands this prefix, and some programs put it into other formats.
	if read(exif.start, len(jpegExif)) && string(buffer[:len(jpegExif)]) == jpegExif {
		exif.start += int64(len(jpegExif))
	}
	if !read(exif.start, header) {
		return 0, false
	}
	var order binary.ByteOrder
	switch string(buffer[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 0, false
	}
	at := exif.start + int64(order.Uint32(buffer[4:]))
	if !read(at, 2) {
		return 0, false
	}
	at += 2
	for range order.Uint16(buffer[:]) {
		if !read(at, entryLength) {
			return 0, false
		}
		if order.Uint16(buffer[:]) == tag && order.Uint16(buffer[2:]) == isShort && order.Uint32(buffer[4:]) == 1 {
			return order.Uint16(buffer[8:]), true
		}
		at += entryLength
	}
	return 0, false
}
