// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"bytes"
	"encoding/binary"
)

// photoshopName is the prefix of Photoshop resources in a JPEG.
const photoshopName = "Photoshop 3.0\x00"

// The Photoshop resources that hold metadata (Adobe Photoshop File Formats, "Image Resource IDs").
const (
	resourceIPTC  = 0x0404
	resourceExif1 = 0x0422
	resourceExif3 = 0x0423
	resourceXMP   = 0x0424
)

// cleanResources removes places from metadata in Photoshop resources. Each resource consists of four letters, a number,
// a name and its data; the last two are padded to an even length.
func cleanResources(data []byte, withExif bool) {
	const mark, idLength, sizeLength = "8BIM", 2, 4
	for {
		at := bytes.Index(data, []byte(mark))
		if at < 0 || len(data)-at < len(mark)+idLength+1 {
			return
		}
		data = data[at+len(mark):]
		id := binary.BigEndian.Uint16(data)
		name := 1 + int(data[idLength])
		name += name % 2
		if len(data) < idLength+name+sizeLength {
			return
		}
		data = data[idLength+name:]
		size := int64(binary.BigEndian.Uint32(data))
		data = data[sizeLength:]
		content := data[:min(size, int64(len(data)))]
		switch id {
		case resourceIPTC:
			cleanIPTC(content)
		case resourceExif1, resourceExif3:
			if withExif {
				cleanExif(content)
			}
		case resourceXMP:
			cleanXMP(content)
		}
		data = data[len(content):]
	}
}

// cleanIPTC overwrites place names with blanks (IPTC-NAA Information Interchange Model 4.2, section 6): those of the
// content, and the city, sublocation, province and country.
func cleanIPTC(data []byte) {
	const mark, record, head, long = 0x1c, 2, 5, 0x8000
	for len(data) >= head && data[0] == mark {
		kind, number, length := data[1], data[2], int(binary.BigEndian.Uint16(data[3:]))
		data = data[head:]
		if length >= long {
			// A long length is a number that takes the given number of bytes.
			digits := length - long
			if digits > 4 || digits > len(data) {
				return
			}
			length = 0
			for _, digit := range data[:digits] {
				length = length<<8 | int(digit)
			}
			data = data[digits:]
		}
		if length > len(data) {
			return
		}
		if kind == record && (number == 26 || number == 27 || number == 90 || number == 92 || number == 95 || number == 100 || number == 101) {
			blank(data[:length])
		}
		data = data[length:]
	}
}
