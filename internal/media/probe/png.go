// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/herald-social/herald/internal/media/store"
)

// The sizes of what surrounds the content of a PNG chunk: its length and kind before it, and its checksum after it
// (PNG, third edition, section 5.3). The file starts with a signature.
const pngSignature, pngHead, pngSum = 8, 8, 4

// Kinds of chunks.
const pngHeader, pngPixels, pngEnd = "IHDR", "IDAT", "IEND"

type pngChunk struct {
	kind [4]byte
	// content is the position of the content, and next that of the next chunk. Both may lie beyond the end of the file.
	content span
	next    int64
}

func pngChunkAt(file *store.BlockReader, at int64) (pngChunk, bool) {
	var head [pngHead]byte
	if _, err := file.ReadAt(head[:], at); err != nil {
		return pngChunk{}, false
	}
	start := at + pngHead
	end := start + int64(binary.BigEndian.Uint32(head[:]))
	return pngChunk{kind: [4]byte(head[4:]), content: span{start, end}, next: end + pngSum}, true
}

// pngParts reads a PNG's parts up to its pixels (PNG, third edition, section 5). Like browsers, it ignores the rest.
func pngParts(file *store.BlockReader) imageParts {
	var parts imageParts
	for at := int64(pngSignature); ; {
		chunk, ok := pngChunkAt(file, at)
		if !ok {
			return parts
		}
		content := span{chunk.content.start, min(chunk.content.end, file.Size())}
		switch string(chunk.kind[:]) {
		case "eXIf":
			parts.exif = content
		case "iCCP":
			parts.profile, parts.packed = []span{content}, true
		case "sRGB":
			parts.colors.isSRGB = true
		case "cICP":
			_, err := file.ReadAt(parts.colors.code[:], content.start)
			parts.colors.coded = err == nil
		case "cHRM":
			parts.colors.primaries = pngPrimaries(file, content.start)
		case "gAMA":
			parts.colors.gamma, parts.colors.hasGamma = pngGamma(file, content.start)
		case pngHeader, "PLTE":
			parts.damage = cmp.Or(parts.damage, pngDamage(file, chunk))
		case pngPixels:
			parts.pixels = at
			return parts
		}
		at = chunk.next
	}
}

// pngComplete continues after a PNG's first parts and verifies the pixels' checksums, which decoders require; it
// describes any damage. Decoders ignore the checksums of text chunks and similar chunks, and errors after the pixels,
// so there it only looks for the end chunk.
func pngComplete(file *store.BlockReader, parts *imageParts) (whole bool, damage string) {
	const end = "\x00\x00\x00\x00IEND\xae\x42\x60\x82"
	if parts.pixels == 0 || parts.damage != "" {
		return parts.pixels != 0, parts.damage
	}
	behind := parts.pixels
	for at := parts.pixels; ; {
		chunk, ok := pngChunkAt(file, at)
		switch cut := !ok || chunk.next > file.Size(); {
		case cut && string(chunk.kind[:]) == pngPixels:
			return false, ""
		case cut:
			return contains(file, span{behind, file.Size()}, end), ""
		case string(chunk.kind[:]) == pngEnd:
			return true, ""
		case string(chunk.kind[:]) == pngPixels:
			if damage := pngDamage(file, chunk); damage != "" {
				return true, damage
			}
			behind = chunk.next
		}
		at = chunk.next
	}
}

func pngDamage(file *store.BlockReader, chunk pngChunk) string {
	if checksumOK(file, chunk) {
		return ""
	}
	return fmt.Sprintf("the checksum of its part %s is wrong", string(chunk.kind[:]))
}

func checksumOK(file *store.BlockReader, chunk pngChunk) bool {
	const step = 32 << 10
	// The checksum also covers the kind.
	at, end := chunk.content.start-4, chunk.content.end
	buffer := make([]byte, min(step, end-at))
	sum := crc32.NewIEEE()
	for at < end {
		part := buffer[:min(step, end-at)]
		if _, err := file.ReadAt(part, at); err != nil {
			return false
		}
		_, _ = sum.Write(part)
		at += int64(len(part))
	}
	var stored [pngSum]byte
	if _, err := file.ReadAt(stored[:], end); err != nil {
		return false
	}
	return binary.BigEndian.Uint32(stored[:]) == sum.Sum32()
}
