// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// The location in the files is Zürich's main station, in EXIF, XMP and video formats.
const (
	degreesNorth, minutesNorth, hundredthsNorth = 47, 22, 4113
	degreesEast, minutesEast, hundredthsEast    = 8, 32, 2450
	latitude, longitude                         = 47.3781, 8.5401
	xmpLatitude, xmpLongitude                   = "47,22.6855N", "8,32.4083E"
	iso6709                                     = "+47.3781+008.5401+408.000/"
)

// Needles returns the byte sequences that represent the location in the files. None of them may be published.
func Needles() [][]byte {
	return [][]byte{
		[]byte(xmpLatitude), []byte(xmpLongitude), []byte(iso6709), fixedPoint(latitude), gpmfPlace(),
		north(binary.LittleEndian), north(binary.BigEndian),
	}
}

// ContainsPlace reports whether a file contains the location.
func ContainsPlace(data []byte) bool {
	for _, needle := range Needles() {
		if bytes.Contains(data, needle) {
			return true
		}
	}
	return false
}

func longs(order binary.ByteOrder, values ...uint32) []byte {
	out := make([]byte, 4*len(values))
	for i, v := range values {
		order.PutUint32(out[4*i:], v)
	}
	return out
}

func north(order binary.ByteOrder) []byte {
	return longs(order, degreesNorth, 1, minutesNorth, 1, hundredthsNorth, 100)
}

func east(order binary.ByteOrder) []byte {
	return longs(order, degreesEast, 1, minutesEast, 1, hundredthsEast, 100)
}

// fixedPoint encodes a number with 16 fractional bits, as in videos.
func fixedPoint(v float64) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(math.Round(v*(1<<16))))
}

// tag is an entry of an EXIF directory (EXIF 2.32, section 4.6.2). Data of more than four bytes follows the directory.
type tag struct {
	number, kind uint16
	count        uint32
	data         []byte
}

// The types of tags, and the tags' numbers.
const (
	kindText, kindShort, kindLong, kindRational = 2, 3, 4, 5

	tagMaker, tagTurn, tagGPS        = 0x010f, 0x0112, 0x8825
	tagThumbnail, tagThumbnailLength = 0x0201, 0x0202
)

// directoryLength returns a directory's length including its data.
func directoryLength(tags []tag) int {
	n := 2 + 12*len(tags) + 4
	for _, t := range tags {
		if len(t.data) > 4 {
			n += len(t.data)
		}
	}
	return n
}

// directory encodes a directory at an offset; next is the offset of the following one.
func directory(order binary.ByteOrder, at int, tags []tag, next int) []byte {
	out := make([]byte, 2+12*len(tags)+4, directoryLength(tags))
	order.PutUint16(out, uint16(len(tags)))
	for i, t := range tags {
		entry := out[2+12*i:]
		order.PutUint16(entry, t.number)
		order.PutUint16(entry[2:], t.kind)
		order.PutUint32(entry[4:], t.count)
		if len(t.data) <= 4 {
			copy(entry[8:12], t.data)
			continue
		}
		order.PutUint32(entry[8:], uint32(at+len(out)))
		out = append(out, t.data...)
	}
	order.PutUint32(out[2+12*len(tags):], uint32(next))
	return out
}

func short(order binary.ByteOrder, v int) []byte {
	return order.(binary.AppendByteOrder).AppendUint16(nil, uint16(v))
}

// exif returns EXIF data with an orientation, a location and a thumbnail, each of them optional.
func exif(order binary.ByteOrder, turn int, place bool, thumbnail []byte) []byte {
	const start = 8
	main := []tag{
		{tagMaker, kindText, 8, []byte("Oddcam1\x00")},
		{tagTurn, kindShort, 1, short(order, max(turn, 1))},
		{tagGPS, kindLong, 1, make([]byte, 4)},
	}
	gps := []tag{
		{0, 1, 4, []byte{2, 3, 0, 0}},
		{1, kindText, 2, []byte("N\x00")},
		{2, kindRational, 3, north(order)},
		{3, kindText, 2, []byte("E\x00")},
		{4, kindRational, 3, east(order)},
	}
	if !place {
		main, gps = main[:2], nil
	}
	at := start + directoryLength(main)
	if place {
		order.PutUint32(main[2].data, uint32(at))
		at += directoryLength(gps)
	}
	next := 0
	if thumbnail != nil {
		next = at
	}
	head := "II*\x00"
	if order == binary.BigEndian {
		head = "MM\x00*"
	}
	out := append([]byte(head), longs(order, start)...)
	out = append(out, directory(order, start, main, next)...)
	if place {
		out = append(out, directory(order, len(out), gps, 0)...)
	}
	if thumbnail != nil {
		tags := []tag{{tagThumbnail, kindLong, 1, longs(order, uint32(at))}, {tagThumbnailLength, kindLong, 1, longs(order, uint32(len(thumbnail)))}}
		order.PutUint32(tags[0].data, uint32(at+directoryLength(tags)))
		out = append(append(out, directory(order, at, tags, 0)...), thumbnail...)
	}
	return out
}

// xmp returns an XMP packet with or without the location.
func xmp(place bool, padding int) []byte {
	where := ""
	if place {
		where = fmt.Sprintf(` xmlns:exif="http://ns.adobe.com/exif/1.0/" exif:GPSLatitude=%q exif:GPSLongitude=%q`, xmpLatitude, xmpLongitude)
	}
	return fmt.Appendf(nil, `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">`+
		`<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:CreatorTool="Oddcam"%s/></rdf:RDF></x:xmpmeta>%s<?xpacket end="w"?>`, where, strings.Repeat(" ", padding))
}

// profile returns an ICC profile, version 2, for a screen with the given primaries, as columns of XYZ for D50, and the
// given gamma (ICC.1:2001-04).
func profile(name string, gamma float64, red, green, blue [3]float64) []byte {
	xyz := func(v [3]float64) []byte {
		return append([]byte("XYZ \x00\x00\x00\x00"), longs(binary.BigEndian, uint32(math.Round(v[0]*(1<<16))), uint32(math.Round(v[1]*(1<<16))), uint32(math.Round(v[2]*(1<<16))))...)
	}
	curve := binary.BigEndian.AppendUint16([]byte("curv\x00\x00\x00\x00\x00\x00\x00\x01"), uint16(math.Round(gamma*256)))
	curve = append(curve, 0, 0)
	described := append([]byte("desc\x00\x00\x00\x00"), longs(binary.BigEndian, uint32(len(name)+1))...)
	described = append(append(described, name...), make([]byte, 1+4+4+2+1+67)...)
	described = append(described, make([]byte, (4-len(described)%4)%4)...)
	tags := []struct {
		name string
		data []byte
	}{
		{"desc", described},
		{"cprt", []byte("text\x00\x00\x00\x00CC0\x00")},
		{"wtpt", xyz([3]float64{0.9642, 1, 0.8249})},
		{"rXYZ", xyz(red)},
		{"gXYZ", xyz(green)},
		{"bXYZ", xyz(blue)},
		{"rTRC", curve},
		{"gTRC", curve},
		{"bTRC", curve},
	}
	const head = 128
	table, body := longs(binary.BigEndian, uint32(len(tags))), []byte{}
	for _, t := range tags {
		table = append(table, t.name...)
		table = append(table, longs(binary.BigEndian, uint32(head+4+12*len(tags)+len(body)), uint32(len(t.data)))...)
		body = append(body, t.data...)
	}
	out := make([]byte, head, head+len(table)+len(body))
	binary.BigEndian.PutUint32(out, uint32(cap(out)))
	copy(out[8:], "\x02\x10\x00\x00mntrRGB XYZ \x07\xe8\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00acsp")
	copy(out[68:], longs(binary.BigEndian, 0xf6d6, 0x10000, 0xd32d))
	return append(append(out, table...), body...)
}

func displayP3() []byte {
	return profile("Display P3", 2.2, [3]float64{0.5151, 0.2412, -0.0011 + 0.0011}, [3]float64{0.2919, 0.6922, 0.0419}, [3]float64{0.1572, 0.0666, 0.7841})
}

func adobeRGB() []byte {
	return profile("Adobe RGB (1998)", 2.19921875, [3]float64{0.6097, 0.3111, 0.0195}, [3]float64{0.2053, 0.6257, 0.0609}, [3]float64{0.1492, 0.0632, 0.7446})
}

// TurnOf returns the EXIF orientation of a JPEG or a PNG, or zero if it has none.
func TurnOf(image []byte) int {
	for head, order := range map[string]binary.ByteOrder{"II*\x00": binary.LittleEndian, "MM\x00*": binary.BigEndian} {
		for _, prefix := range []string{"Exif\x00\x00", "eXIf"} {
			_, exif, found := bytes.Cut(image, []byte(prefix+head))
			if !found {
				continue
			}
			wanted := order.(binary.AppendByteOrder).AppendUint16(nil, tagTurn)
			if at := bytes.Index(exif, append(wanted, short(order, kindShort)...)); at >= 0 && len(exif) >= at+10 {
				return int(order.Uint16(exif[at+8:]))
			}
		}
	}
	return 0
}
