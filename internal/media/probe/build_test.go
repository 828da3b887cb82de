// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import "github.com/herald-social/herald/test/mediatest"

// Functions that build files.
var (
	join  = mediatest.Join
	words = mediatest.Words
	box   = mediatest.Box
	chunk = mediatest.Chunk
)

// movie is the content of a generated video's moov box. The video has a single track with number 1 and 64 by 48 pixels.
type movie struct {
	// duration is the duration in the header, and whole the one in the header of the fragments, in ms. Zero means unknown.
	duration, whole uint32
	// handler is the name of the track's handler.
	handler string
	// table is the track's table of samples, if any.
	table []byte
	// standard is the default duration of a sample, in track units.
	standard uint32
	// scale is the number of track units per second. Zero means a thousand.
	scale uint32
	// more are additional parts.
	more []byte
}

func moov(m movie) []byte {
	const second = 1000
	if m.scale == 0 {
		m.scale = second
	}
	extends := box("trex", words(0, 1, 1, m.standard, 0, 0))
	if m.whole > 0 {
		extends = join(box("mehd", words(0, m.whole)), extends)
	}
	return box("moov",
		box("mvhd", words(0, 0, 0, second, m.duration), make([]byte, 80)),
		trak(1, "vide", m.handler, m.scale, m.table),
		m.more,
		box("mvex", extends))
}

func trak(id uint32, kind, name string, scale uint32, table []byte) []byte {
	if table == nil {
		table = box("stts", words(0, 0))
	}
	return box("trak",
		box("tkhd", words(0, 0, 0, id, 0, 0, 0, 0, 0, 0, 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000, 64<<16, 48<<16)),
		box("mdia",
			box("mdhd", words(0, 0, 0, scale, 0, 0)),
			box("hdlr", words(0, 0), kind, words(0, 0, 0), name, "\x00"),
			box("minf", box("stbl", table, box("stsc", words(0, 0)), box("stco", words(0, 0))))))
}

// moof returns a fragment with one track.
func moof(parts ...any) []byte {
	return box("moof", box("mfhd", words(0, 1)), box("traf", parts...))
}
