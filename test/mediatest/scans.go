// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mediatest

import (
	"bytes"
	"encoding/binary"
)

// Scans returns a progressive single-color JPEG whose last scan, which does not change the picture, is repeated the
// given number of times. Each scan is a few bytes long and visits every block, so decoding takes far longer than the
// size of the file suggests (ITU-T T.81, G.1.2.2, end-of-band runs).
func Scans(width, height, times int) []byte {
	const (
		block       = 8
		longestRun  = 1<<15 - 1
		quantiser   = 64
		codeLengths = 16
	)
	var out bytes.Buffer
	out.Write([]byte{0xff, 0xd8})
	segment := func(marker byte, data []byte) {
		out.Write([]byte{0xff, marker})
		_ = binary.Write(&out, binary.BigEndian, uint16(len(data)+2)) // writing to a buffer never fails
		out.Write(data)
	}
	segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, quantiser)...))
	segment(0xc2, []byte{8, byte(height >> 8), byte(height), byte(width >> 8), byte(width), 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0})
	lengths := make([]byte, codeLengths)
	lengths[0] = 1
	segment(0xc4, append(append([]byte{0x00}, lengths...), 0))
	segment(0xc4, append(append([]byte{0x10}, lengths...), 0xe0))
	segment(0xda, []byte{3, 1, 0, 2, 0, 3, 0, 0, 0, 0})
	out.Write(make([]byte, width*height/(block*block)*3/2/8+200))
	blocks := ((width + block - 1) / block) * ((height + block - 1) / block)
	run := endOfBand((blocks + longestRun - 1) / longestRun)
	for range times {
		segment(0xda, []byte{1, 1, 0, 1, 63, 0})
		out.Write(run)
	}
	out.Write([]byte{0xff, 0xd9})
	return out.Bytes()
}

// endOfBand returns the entropy-coded part of a scan of maximal end-of-band runs: the code 0, and fourteen ones.
func endOfBand(runs int) []byte {
	const run, bitsOfRun = 0x3fff, 15
	var (
		out  []byte
		acc  uint64
		bits uint
	)
	for range runs {
		acc, bits = acc<<bitsOfRun|run, bits+bitsOfRun
		for bits >= 8 {
			bits -= 8
			b := byte(acc >> bits)
			if out = append(out, b); b == 0xff {
				out = append(out, 0)
			}
		}
	}
	return append(out, byte(acc<<(8-bits)), 0)
}
