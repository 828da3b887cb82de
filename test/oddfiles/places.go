// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"encoding/binary"
	"math"
	"slices"
)

// international encodes text in a QuickTime box (QuickTime File Format, "User Data Text Strings").
func international(kind, text string) []byte {
	const undetermined = 0x55c4
	head := binary.BigEndian.AppendUint16(nil, uint16(len(text)))
	return box(kind, binary.BigEndian.AppendUint16(head, undetermined), []byte(text))
}

// loci encodes a location as 3GPP does (TS 26.244, section 8.8).
func loci() []byte {
	return box("loci", words(0), []byte{0x55, 0xc4}, []byte("Main station\x00\x00"), fixedPoint(longitude), fixedPoint(latitude), fixedPoint(408), []byte("earth\x00\x00"))
}

// keyed encodes a value of QuickTime's metadata (QuickTime File Format, "Metadata").
func keyed(key, value string) []byte {
	return box("meta",
		box("hdlr", words(0, 0), []byte("mdta"), words(0, 0, 0), []byte{0}),
		box("keys", words(0, 1), box("mdta", []byte(key))),
		box("ilst", append(words(uint32(8+16+len(value)), 1), box("data", words(1, 0), []byte(value))...)))
}

// gpmfPlace encodes latitude and longitude as GoPro does, in units of a ten-millionth of a degree.
func gpmfPlace() []byte {
	const unit = 1e7
	return words(uint32(math.Round(latitude*unit)), uint32(math.Round(longitude*unit)))
}

// gpmf encodes a GoPro's recording: a location in GPS5 (GPMF, "GoPro Metadata Format").
func gpmf() []byte {
	entry := func(key string, kind byte, size int, count uint16, data []byte) []byte {
		out := append([]byte(key), kind, byte(size), byte(count>>8), byte(count))
		return append(out, append(data, make([]byte, (4-len(data)%4)%4)...)...)
	}
	place := entry("GPS5", 'l', 20, 1, append(gpmfPlace(), words(408_000, 1000, 100)...))
	stream := entry("STRM", 0, 1, uint16(len(place)), place)
	return entry("DEVC", 0, 1, uint16(len(stream)), stream)
}

// places returns videos with a location.
func places() []Row {
	uuid := []byte("\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac")
	rows := []Row{
		{Name: "gps-xyz.mp4", Reason: "Android phones", Make: edit(tenSeconds, described(box("udta", international("\xa9xyz", iso6709)))), Short: true},
		{Name: "gps-xyz-last.mp4", Reason: "the same, with the metadata after the frames", Make: edit(tenSeconds, described(box("udta", international("\xa9xyz", iso6709))), indexLast)},
		{Name: "gps-loci.mp4", Reason: "3GPP phones", Make: edit(tenSeconds, described(box("udta", loci())))},
		{Name: "gps-keys.mov", Reason: "iPhones", Make: edit(tenSeconds, branded("qt  "), described(keyed("com.apple.quicktime.location.ISO6709", iso6709))), Short: true},
		{Name: "gps-keys-and-xyz.mov", Reason: "iPhone videos exported by Photos", Make: edit(tenSeconds,
			branded("qt  "), described(keyed("com.apple.quicktime.location.ISO6709", iso6709), box("udta", international("\xa9xyz", iso6709))))},
		{Name: "gps-gopro.mp4", Reason: "GoPro's gpmd track", Make: edit(tenSeconds, recorded("meta", "gpmd", gpmf())), Short: true},
		{Name: "gps-xmp.mp4", Reason: "Adobe Bridge and Premiere", Make: edit(tenSeconds, described(box("uuid", uuid, xmp(true, 100))))},
		{Name: "gps-subtitles.mp4", Reason: "DJI drones", Needs: []string{"libx264"}, Make: subtitled("GPS(" + iso6709 + ",18)")},
	}
	for i := range rows {
		rows[i].Place, rows[i].Want = true, withoutPlace
	}
	return slices.Concat(rows, []Row{{
		Name: "data-track.mp4", Reason: "a track of an unknown type", Make: edit(tenSeconds, recorded("meta", "oddd", []byte("whatever it may be"))), Want: asSent,
	}})
}
