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
	// uuidLength is the length of what names a box of the kind uuid.
	uuidLength = 16
	uuidXMP    = "be7acfcb97a942e89c71999491e3afac"
	// uuidCanon holds what Canon's cameras write as directories of EXIF.
	uuidCanon = "85c0b687820f11e08111f4ce462b6a48"
	// longestLeaf is how long metadata of a form that is not known may be to be searched
	// for EXIF and XMP.
	longestLeaf = 1 << 20
	// mostKeys is how many keys of metadata a film may have, and longestKey how much is
	// read of one.
	mostKeys, longestKey = 4096, 256
)

// placeBoxes are the boxes that hold nothing but a place, or what a camera has measured with
// it: coordinates of QuickTime and 3GPP (TS 26.244, section 8.10), GoPro's telemetry, Canon's
// directory of places, the tables of places of dashboard cameras, and Nikon's tags.
var placeBoxes = map[string]bool{
	"\xa9xyz": true, "loci": true, "GPMF": true, "CMT4": true, "gps ": true, "gps0": true, "GPS ": true, "GPS0": true, "NCDT": true,
}

// metadata cleans a box of metadata within one of kind outer.
func (f *film) metadata(outer string, b box) {
	// What may be in what is bounded, so that no film is deeper than that.
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

// emptyBlocks empties what a dashboard camera writes among the frames, once a second, and lists
// in a table of offsets and lengths: boxes of free space that begin with "GPS ".
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

// uuid cleans a box of a program's own.
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

// leaf cleans metadata of a form that is not known: it may contain EXIF and XMP.
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

// meta cleans metadata by keys: a list of names, and of what belongs to them by their
// numbers (QuickTime File Format, "Metadata Structure"; ISO 14496-12, section 8.11.1).
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

// keys returns the numbers of the keys that name places.
func (f *film) keys(b box) map[uint32]bool {
	const head, keyHead = 8, 8
	found := map[uint32]bool{}
	at := b.start + head
	for number := uint32(1); number <= min(f.word(b.span, 4), mostKeys) && b.end-at >= keyHead; number++ {
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

// namesPlace reports whether a key is that of a place: com.apple.quicktime.location.ISO6709,
// location-eng.
func namesPlace(key string) bool {
	key = strings.ToLower(key)
	return strings.Contains(key, "location") || strings.Contains(key, "gps") || namesCoordinates(key)
}

// named reports whether an item that has a name of its own is named like a place.
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
