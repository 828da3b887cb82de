// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "slices"

// huffman is a Huffman code (ITU-T T.81, annex C).
type huffman struct {
	symbols []byte
	// last is the last value of each length, or -1. from plus a value is the index of the value's symbol.
	last, from [16]int
	// short maps the next eight bits to symbols whose codes are no longer than that.
	short [256]struct {
		symbol byte
		length uint8
	}
	// codes are the symbols' codes. The length is zero for a symbol without a code.
	codes [256]struct {
		value  uint32
		length uint
	}
}

// newHuffman parses a code in a DHT part, and returns the rest of the part. It returns nil if the code is invalid.
func newHuffman(data []byte) (code *huffman, rest []byte) {
	const head = 1 + len(code.last)
	if len(data) < head {
		return nil, nil
	}
	total := 0
	for _, count := range data[1:head] {
		total += int(count)
	}
	if total > 256 || len(data) < head+total {
		return nil, nil
	}
	code = &huffman{symbols: slices.Clone(data[head : head+total])}
	value, at := 0, 0
	for length, count := range data[1:head] {
		code.last[length], code.from[length] = -1, at-value
		for range count {
			if bits := length + 1; bits <= 8 && value < 1<<bits {
				for low := range 1 << (8 - bits) {
					short := &code.short[value<<(8-bits)|low]
					short.symbol, short.length = code.symbols[at], uint8(bits)
				}
			}
			of := &code.codes[code.symbols[at]]
			of.value, of.length = uint32(value), uint(length+1)
			code.last[length] = value
			value, at = value+1, at+1
		}
		value <<= 1
	}
	return code, data[head+total:]
}
