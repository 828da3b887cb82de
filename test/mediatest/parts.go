// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mediatest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime"
)

// Join concatenates strings and bytes. Nil is empty.
func Join(parts ...any) []byte {
	out := []byte{}
	for _, part := range parts {
		switch part := part.(type) {
		case nil:
		case string:
			out = append(out, part...)
		case []byte:
			out = append(out, part...)
		default:
			panic(fmt.Sprintf("cannot join a %T", part))
		}
	}
	return out
}

// Words encodes 32-bit numbers in big-endian order, as MP4 and PNG do.
func Words(values ...uint32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, value := range values {
		out = binary.BigEndian.AppendUint32(out, value)
	}
	return out
}

// Box encodes an MP4 box (ISO 14496-12, section 4.2).
func Box(kind string, parts ...any) []byte {
	body := Join(parts...)
	return Join(Words(uint32(len(body)+8)), kind, body)
}

// Chunk encodes a PNG chunk (third edition, section 5.3).
func Chunk(kind string, parts ...any) []byte {
	data := Join(parts...)
	return Join(Words(uint32(len(data))), kind, data, Words(crc32.ChecksumIEEE(Join(kind, data))))
}

// Allocated runs f and returns the number of bytes that the process allocated in the meantime.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
