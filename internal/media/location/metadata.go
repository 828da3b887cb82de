// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

const (
	// uuidLength is the length of the name of a uuid box.
	uuidLength = 16
	uuidXMP    = "be7acfcb97a942e89c71999491e3afac"
	// uuidCanon contains the EXIF directories of Canon cameras.
	uuidCanon = "85c0b687820f11e08111f4ce462b6a48"
	// longestLeaf is the maximum length of metadata in an unknown format that is searched for EXIF and XMP.
	longestLeaf = 1 << 20
	// maxKeys limits the number of a video's metadata keys, and longestKey the number of bytes read from each.
	maxKeys, longestKey = 4096, 256
)

// placeBoxes are the boxes that contain nothing but a location, or a camera's measurements including it: QuickTime and
// 3GPP coordinates (TS 26.244, section 8.10), GoPro's telemetry, Canon's location directory, the location tables of
// dashboard cameras, and Nikon's tags.
var placeBoxes = map[string]bool{
	"\xa9xyz": true, "loci": true, "GPMF": true, "CMT4": true, "gps ": true, "gps0": true, "GPS ": true, "GPS0": true, "NCDT": true,
}

func (f *film) metadata(outer string, b box) {
	// Each kind is accepted only within certain others, which limits the depth.
	above := outer == "" || outer == "moov" || outer == "trak"
	switch {
	case b.kind == "gps " && outer == "moov":
		f.blocks = append(f.blocks, b.span)
		f.free(b)
	case placeBoxes[b.kind]:
		f.free(b)
	case b.kind == "udta" && above:
		f.walk(b.span, b.kind, f.metadata)
	case b.kind == "meta" && (above || outer == "udta"):
		f.meta(b)
	case b.kind == "uuid" && outer != "uuid":
		f.uuid(b)
	case b.kind == "XMP_":
		f.xmp(part{b.span})
	case above, b.kind == "free", b.kind == "skip":
	default:
		f.leaf(b.span)
	}
}

// emptyBlocks clears the data that a dashboard camera writes among the frames once per second: boxes of free space that
// start with "GPS ", listed in a table of offsets and lengths.
func (f *film) emptyBlocks(table span) {
	const head, entry, name = 8, 8, "freeGPS "
	for at := int64(head); at+entry <= table.length() && !f.ended() && !f.found.over; at += entry {
		var begins [len(name)]byte
		offset, length := int64(f.word(table, at)), int64(f.word(table, at+4))
		if f.read(begins[:], f.whole.start+offset+boxHeader-4) && string(begins[:]) == name {
			f.zero(offset+boxHeader, length-boxHeader)
		}
	}
}

func (f *film) uuid(b box) {
	var name [uuidLength]byte
	if b.length() < uuidLength || !f.read(name[:], b.start) {
		return
	}
	content := span{b.start + uuidLength, b.end}
	switch hex.EncodeToString(name[:]) {
	case uuidXMP:
		f.xmp(part{content})
	case uuidCanon:
		f.walk(content, b.kind, f.metadata)
	default:
		f.leaf(content)
	}
}

// leaf cleans metadata in an unknown format, which may contain EXIF and XMP.
func (f *film) leaf(in span) {
	if in.length() > longestLeaf {
		return
	}
	f.edit(part{in}, func(data []byte) {
		const begins, ends = "<x:xmpmeta", "</x:xmpmeta>"
		if isTIFF(data) {
			cleanExif(data)
			return
		}
		if at := bytes.Index(data, []byte(exifName)); at >= 0 {
			cleanExif(data[at:])
		}
		if at := bytes.Index(data, []byte(begins)); at >= 0 {
			if end := bytes.Index(data[at:], []byte(ends)); end >= 0 {
				cleanXMP(data[at : at+end+len(ends)])
			}
		}
	})
}

// meta cleans key-value metadata: a list of names, and a list of values that refer to names by number (QuickTime File
// Format, "Metadata Structure"; ISO 14496-12, section 8.11.1).
func (f *film) meta(b box) {
	in := b.span
	const version = 4
	// QuickTime has no version here.
	if f.word(in, boxHeader-version) != binary.BigEndian.Uint32([]byte("hdlr")) {
		in.start += version
	}
	var keys map[uint32]bool
	var items []span
	f.walk(in, b.kind, func(outer string, b box) {
		switch b.kind {
		case "keys":
			keys = f.keys(b)
		case "ilst":
			items = append(items, b.span)
		default:
			f.metadata(outer, b)
		}
	})
	for _, list := range items {
		f.walk(list, "ilst", func(_ string, b box) {
			if placeBoxes[b.kind] || keys[binary.BigEndian.Uint32([]byte(b.kind))] || b.kind == "----" && f.named(b) {
				f.free(b)
			}
		})
	}
}

func (f *film) keys(b box) map[uint32]bool {
	const head, keyHead = 8, 8
	found := map[uint32]bool{}
	at := b.start + head
	for number := uint32(1); number <= min(f.word(b.span, 4), maxKeys) && b.end-at >= keyHead; number++ {
		length := int64(f.word(span{at, b.end}, 0))
		if length < keyHead || length > b.end-at {
			return found
		}
		name := make([]byte, min(length-keyHead, longestKey))
		if !f.read(name, at+keyHead) {
			return found
		}
		if namesPlace(string(name)) {
			found[number] = true
		}
		at += length
	}
	return found
}

// namesPlace reports whether a key is that of a location: com.apple.quicktime.location.ISO6709, location-eng.
func namesPlace(key string) bool {
	key = strings.ToLower(key)
	return strings.Contains(key, "location") || strings.Contains(key, "gps") || namesCoordinates(key)
}

// named reports whether an item that carries its own name is named like a location.
func (f *film) named(item box) (found bool) {
	const version = 4
	f.walk(item.span, item.kind, func(_ string, b box) {
		if b.kind != "name" || b.length() < version {
			return
		}
		name := make([]byte, min(b.length()-version, longestKey))
		if f.read(name, b.start+version) {
			found = found || namesPlace(string(name))
		}
	})
	return found
}
