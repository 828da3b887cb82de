// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import "encoding/binary"

// webp cleans the metadata of a WebP (RFC 9649, section 2), even if the first chunk does not announce it.
func (c *cleaner) webp() {
	const fileHeader, chunkHeader = 12, 8
	var head [chunkHeader]byte
	if !c.read(head[:], 0) {
		return
	}
	// The length field does not count the first eight bytes.
	end := min(int64(binary.LittleEndian.Uint32(head[4:]))+chunkHeader, c.file.Size())
	for at := int64(fileHeader); at+chunkHeader <= end && c.read(head[:], at) && !c.ended(); {
		length := int64(binary.LittleEndian.Uint32(head[4:]))
		content := span{at + chunkHeader, min(at+chunkHeader+length, end)}
		switch string(head[:4]) {
		case "EXIF":
			c.edit(part{content}, cleanExif)
		case "XMP ":
			c.xmp(part{content})
		}
		at += chunkHeader + length + length%2
	}
}
