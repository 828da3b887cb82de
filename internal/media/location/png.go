// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
)

const (
	pngKind, pngSum = 4, 4
	// pngEnd is the last chunk of every PNG.
	pngEnd = "\x00\x00\x00\x00IEND\xae\x42\x60\x82"
	// longestKeyword is the maximum length of a text chunk's keyword (PNG, third edition, section 11.3.3).
	longestKeyword = 79
	// maxUnpacked limits the total length of a file's decompressed text.
	maxUnpacked = 4 * longestPart
	// xmpKeyword is the keyword for XMP, rawKeyword the prefix for metadata that ImageMagick writes as hexadecimal text.
	xmpKeyword = "XML:com.adobe.xmp"
	rawKeyword = "Raw profile type "
)

// png cleans a PNG's metadata (PNG, third edition, section 5), before and after its pixels.
func (c *cleaner) png() {
	const signature, header = 8, 8
	var head [header]byte
	for at := int64(signature); c.read(head[:], at) && !c.ended(); {
		content := span{at + header, at + header + int64(binary.BigEndian.Uint32(head[:]))}
		kind := string(head[4:])
		metadata := kind == "eXIf" || kind == "tEXt" || kind == "zTXt" || kind == "iTXt"
		switch {
		case kind == "IEND":
			c.cleanAppended(content.end + pngSum)
			return
		case metadata && !c.fits(content):
			return
		case kind == "eXIf":
			c.chunk(content, 0, cleanExif)
		case metadata:
			c.text(kind, content)
		}
		at = content.end + pngSum
	}
}

// fits reports whether a chunk ends before the end of the picture. If not, its length is wrong and it is not a chunk.
func (c *cleaner) fits(content span) bool {
	reach := min(content.end+pngSum+int64(len(pngEnd))-1, c.file.Size())
	return content.end+pngSum <= c.file.Size() && c.search(span{content.start, reach}, pngEnd, pngEnd).kind == ""
}

// chunk cleans a chunk's content, starting at the given offset, and corrects its checksum.
func (c *cleaner) chunk(content span, from int64, clean func([]byte)) {
	c.edit(part{{content.start - pngKind, content.end + pngSum}}, func(data []byte) {
		end := len(data) - pngSum
		before := crc32.ChecksumIEEE(data[:end])
		clean(data[pngKind+from : end])
		if after := crc32.ChecksumIEEE(data[:end]); after != before {
			binary.BigEndian.PutUint32(data[end:], after)
		}
	})
}

// text cleans text. Compressed or encoded text that contains a location becomes an empty comment of the same length.
func (c *cleaner) text(kind string, content span) {
	head := make([]byte, min(content.length(), longestKeyword+1))
	if !c.read(head, content.start) {
		return
	}
	length := bytes.IndexByte(head, 0)
	if length < 0 {
		return
	}
	keyword := string(head[:length])
	_, property, _ := strings.Cut(strings.ToLower(keyword), ":")
	switch {
	case namesCoordinates(strings.ToLower(keyword)), namesCoordinates(property):
		c.comment(content)
		return
	case keyword != xmpKeyword && !strings.HasPrefix(keyword, rawKeyword):
		return
	}
	from, packed, ok := c.textAt(kind, content, int64(length)+1)
	if !ok {
		return
	}
	text := part{{content.start + from, content.end}}
	switch {
	case !packed && keyword == xmpKeyword && text.length() <= longestPart:
		c.chunk(content, from, cleanXMP)
	case !packed && keyword == xmpKeyword:
		if c.longSigned(text) {
			c.comment(content)
		}
	default:
		if c.packedPlace(text, packed, keyword == xmpKeyword) {
			c.comment(content)
		}
	}
}

// textAt returns the start of the text in a chunk, after its keyword, and whether it is compressed.
func (c *cleaner) textAt(kind string, content span, after int64) (from int64, packed, ok bool) {
	const method, flags, longest = 1, 2, 1 << 10
	switch kind {
	case "tEXt":
		return after, false, true
	case "zTXt":
		return after + method, true, content.length() >= after+method
	}
	// The compression flag and method, the language, and the translated keyword.
	head := make([]byte, min(content.length()-after, longest))
	if len(head) < flags || !c.read(head, content.start+after) {
		return 0, false, false
	}
	from = after + flags
	rest := head[flags:]
	for range 2 {
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			return 0, false, false
		}
		rest, from = rest[end+1:], from+int64(end)+1
	}
	return from, head[0] != 0, true
}

// packedPlace reports whether a compressed or encoded text contains a location, or is too long to examine.
func (c *cleaner) packedPlace(text part, packed, isXMP bool) bool {
	if text.length() > longestPart || c.unpacked > maxUnpacked {
		return true
	}
	data, ok := c.load(text)
	if !ok {
		return false
	}
	if packed {
		unpacked, err := zlib.NewReader(bytes.NewReader(data))
		if err != nil {
			return false
		}
		data, err = io.ReadAll(io.LimitReader(unpacked, longestPart+1))
		if c.unpacked += int64(len(data)); len(data) > longestPart {
			return true
		}
		if err != nil && len(data) == 0 {
			return false
		}
	}
	if !isXMP {
		data = rawProfile(data)
	}
	before := bytes.Clone(data)
	switch {
	case isTIFF(data), bytes.HasPrefix(data, []byte(exifName)):
		cleanExif(data)
	case bytes.HasPrefix(data, []byte(xmpName)):
		cleanXMP(data[len(xmpName):])
	case bytes.HasPrefix(data, []byte("8BIM")):
		cleanResources(data, true)
	case bytes.HasPrefix(data, []byte{0x1c}):
		cleanIPTC(data)
	default:
		cleanXMP(data)
	}
	return !bytes.Equal(before, data)
}

// rawProfile decodes metadata in text form: its name, its length, and lines of hexadecimal digits.
func rawProfile(text []byte) []byte {
	const lines = 3
	parts := bytes.SplitN(bytes.TrimLeft(text, "\n"), []byte("\n"), lines)
	if len(parts) < lines {
		return nil
	}
	var data []byte
	high, half := byte(0), false
	for _, b := range parts[lines-1] {
		digit, ok := hexDigit(b)
		switch {
		case !ok:
		case half:
			data, half = append(data, high<<4|digit), false
		default:
			high, half = digit, true
		}
	}
	return data
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10, true
	default:
		return 0, false
	}
}

func (c *cleaner) comment(content span) {
	const kind, keyword, step = "tEXt", "Comment\x00", 4 << 10
	if content.length() < int64(len(keyword)) {
		return // too short for a location
	}
	head := []byte(kind + keyword)
	blanks := span{content.start + int64(len(keyword)), content.end}
	c.found.replace(content.start-pngKind, head)
	c.found.fill(blanks, ' ')
	sum := crc32.ChecksumIEEE(head)
	filling := bytes.Repeat([]byte{' '}, step)
	for left := blanks.length(); left > 0; left -= step {
		sum = crc32.Update(sum, crc32.IEEETable, filling[:min(left, step)])
	}
	c.found.replace(content.end, binary.BigEndian.AppendUint32(nil, sum))
}
