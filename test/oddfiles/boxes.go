// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"bytes"
	"encoding/binary"

	"github.com/herald-social/herald/test/mediatest"
)

// A video consists of boxes (ISO 14496-12, section 4.2). The offsets of its frames are relative to the start of the
// file, so they change when boxes are inserted before the frames.

var (
	words = mediatest.Words
	box   = mediatest.Box
	chunk = mediatest.Chunk
)

// top returns the top-level boxes of a file.
func top(data []byte) (all [][]byte) {
	for len(data) >= 8 {
		n := int(binary.BigEndian.Uint32(data))
		if n == 0 || n > len(data) {
			n = len(data)
		}
		all = append(all, data[:n])
		data = data[n:]
	}
	return all
}

func kindOf(box []byte) string { return string(box[4:8]) }

// shifted changes all frame offsets.
func shifted(data []byte, by int) []byte {
	data = bytes.Clone(data)
	for at := 0; ; at += 4 {
		found := bytes.Index(data[at:], []byte("stco"))
		if found < 0 {
			return data
		}
		at += found
		for i := range int(binary.BigEndian.Uint32(data[at+8:])) {
			offset := data[at+12+4*i:]
			binary.BigEndian.PutUint32(offset, uint32(int(binary.BigEndian.Uint32(offset))+by))
		}
	}
}

// preceded inserts boxes at the start of the file.
func preceded(boxes ...[]byte) func([]byte) []byte {
	first := bytes.Join(boxes, nil)
	return func(data []byte) []byte { return append(bytes.Clone(first), shifted(data, len(first))...) }
}

// unbranded removes the brand box.
func unbranded(data []byte) []byte {
	n := len(top(data)[0])
	return shifted(data[n:], -n)
}

// branded changes the brand.
func branded(brand string) func([]byte) []byte {
	return func(data []byte) []byte {
		copy(data[8:], brand)
		return data
	}
}

// indexLast moves the movie box after the frames, where cameras write it.
func indexLast(data []byte) []byte {
	var before, index []byte
	for _, b := range top(data) {
		if kindOf(b) == "moov" {
			index = b
		} else {
			before = append(before, b...)
		}
	}
	return append(before, shifted(index, -len(index))...)
}

// described appends boxes to a leading movie box.
func described(boxes ...[]byte) func([]byte) []byte {
	more := bytes.Join(boxes, nil)
	return func(data []byte) []byte {
		var out []byte
		for _, b := range top(shifted(data, len(more))) {
			if kindOf(b) == "moov" {
				b = box("moov", b[8:], more)
			}
			out = append(out, b...)
		}
		return out
	}
}

// put writes bytes at a distance from the first box of a kind or, if all is true, from each of them.
func put(kind string, distance int, value []byte, all bool) func([]byte) []byte {
	return func(data []byte) []byte {
		for at := 0; ; {
			found := bytes.Index(data[at:], []byte(kind))
			if found < 0 {
				return data
			}
			at += found + 4
			copy(data[at+distance:], value)
			if !all {
				return data
			}
		}
	}
}

// compressed compresses a video's movie box (QuickTime File Format, "Compressed Movie Resources").
func compressed(data []byte) []byte {
	var out []byte
	for _, b := range top(indexLast(data)) {
		if kindOf(b) == "moov" {
			b = box("moov", box("cmov", box("dcom", []byte("zlib")), box("cmvd", words(uint32(len(b))), zipped(b))))
		}
		out = append(out, b...)
	}
	return out
}

// recorded adds an invisible track that has one sample, such as a camera's recording of its location.
func recorded(handler, format string, sample []byte) func([]byte) []byte {
	track := func(offset int) []byte {
		description := box(format, make([]byte, 6), []byte{0, 1})
		table := box("stbl",
			box("stsd", words(0, 1), description), box("stts", words(0, 1, 1, 10_000)), box("stsc", words(0, 1, 1, 1, 1)),
			box("stsz", words(0, uint32(len(sample)), 1)), box("stco", words(0, 1, uint32(offset))))
		return box("trak",
			box("tkhd", words(3, 0, 0, 9, 0, 10_000, 0, 0, 0, 0, 1<<16, 0, 0, 0, 1<<16, 0, 0, 0, 1<<30, 0, 0)),
			box("mdia", box("mdhd", words(0, 0, 0, 1000, 10_000, 0)), box("hdlr", words(0, 0), []byte(handler), words(0, 0, 0), []byte("Odd\x00")),
				box("minf", box("nmhd", words(0)), box("dinf", box("dref", words(0, 1), box("url ", words(1)))), table)))
	}
	return func(data []byte) []byte {
		whole := len(data) + len(track(0))
		return append(described(track(whole+8))(data), box("mdat", sample)...)
	}
}
