// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

type imageFormat struct {
	config func(io.Reader) (image.Config, error)
	// parse finds the parts of the file that Herald needs.
	parse func(file *store.BlockReader) imageParts
	// memory estimates the bytes needed to decode the given number of pixels.
	memory func(file *store.BlockReader, parts *imageParts, pixels int64) int64
	// complete walks through the pixels. It reports whether all are present, and describes any damage.
	complete func(file *store.BlockReader, parts *imageParts) (whole bool, damage string)
}

// imageParts are the parts of an image.
type imageParts struct {
	// pixels is the offset of the pixels, or zero if there are none. damage describes damage before them.
	pixels int64
	damage string
	// exif is the position of the metadata that may rotate the picture, or the zero value if there is none.
	exif span
	// profile holds the positions of the color profile's parts. packed means that they are compressed, as in a PNG.
	profile []span
	packed  bool
	// colors are a PNG's other color chunks.
	colors pngColors
	// frame is the frame of a JPEG, which follows the marker frameKind. adobe is true if Adobe's part identifies the
	// channels, and unchanged if they are displayed without conversion. several is Header.MultiPicture. tables are the
	// last tables before the pixels, and scan is the header of the first scan.
	frame            span
	frameKind        byte
	adobe, unchanged bool
	several          bool
	tables           []jpegTable
	scan             span
	// kind and flags are from a WebP's first chunk.
	kind  string
	flags byte
}

func (p *imageParts) colorSpace() colorSpace { return p.colors.colorSpace(len(p.profile) > 0) }

// span is a part of a file, given by offsets.
type span struct{ start, end int64 }

var imageFormats = map[v1alpha1.MimeType]imageFormat{
	v1alpha1.MimeJPEG: {jpeg.DecodeConfig, jpegParts, jpegBytes, jpegComplete},
	v1alpha1.MimePNG:  {pngConfig, pngParts, pngBytes, pngComplete},
	v1alpha1.MimeWebP: {webpConfig, webpParts, webpBytes, webpComplete},
}

// picture examines an image without decoding it: its header, its orientation and its end.
func picture(file *store.BlockReader, size int64, mimeType v1alpha1.MimeType) (Facts, error) {
	h, parts, err := header(file, size, mimeType)
	if err != nil {
		return Facts{}, err
	}
	switch whole, damage := imageFormats[mimeType].complete(file, &parts); {
	case !whole:
		return Facts{}, damaged("The image is cut off: its end is missing. Upload the whole file.")
	case damage != "":
		return Facts{}, damaged("The image is damaged: %s. Export it again.", damage)
	}
	facts := Facts{
		Width: int32(h.Width), Height: int32(h.Height), //nolint:gosec // header bounds them
		Turned: h.Orientation != upright, MultiPicture: h.MultiPicture, Animated: h.Animated,
	}
	if h.Orientation >= firstTurned {
		facts.Width, facts.Height = facts.Height, facts.Width
	}
	return facts, nil
}

// endBytes is the length of the end of a file, which is searched first for the mark that ends the picture. Some cameras
// append other data, up to the size of a short video. If the mark is not found there, the search starts at the pixels.
const endBytes = 64 << 10

func contains(file *store.BlockReader, in span, mark string) bool {
	const step = 32 << 10
	buffer := make([]byte, step+len(mark)-1) // The mark may span two steps.
	for at := in.start; at < in.end; at += step {
		part := buffer[:min(int64(len(buffer)), in.end-at)]
		if _, err := file.ReadAt(part, at); err != nil {
			return false
		}
		if bytes.Contains(part, []byte(mark)) {
			return true
		}
	}
	return false
}

// pngConfig reads the header of a PNG. Damaged text chunks do not matter.
func pngConfig(r io.Reader) (image.Config, error) { return png.DecodeConfig(&Chunks{From: r}) }

// The flags in a WebP's first chunk (RFC 9649, section 2.7).
const (
	webpAnimation = 1 << 1
	webpExif      = 1 << 3
	webpAlpha     = 1 << 4
	webpProfile   = 1 << 5
)

// webpConfig reads the header of a WebP, which is in its first chunk. The library would search all chunks.
func webpConfig(r io.Reader) (image.Config, error) {
	const head = 1 << 10
	return webp.DecodeConfig(io.LimitReader(r, head))
}

func webpComplete(_ *store.BlockReader, parts *imageParts) (whole bool, damage string) {
	return parts.pixels != 0, ""
}

// webpParts reads the parts of a WebP (RFC 9649, section 2).
func webpParts(file *store.BlockReader) imageParts {
	const (
		fileHeader, chunkHeader = 12, 8
		// The first byte of the first chunk announces the others.
		first = "VP8X"
	)
	var head [fileHeader + chunkHeader + 1]byte
	if _, err := file.ReadAt(head[:], 0); err != nil {
		return imageParts{}
	}
	// The length field does not count the first eight bytes.
	end := int64(binary.LittleEndian.Uint32(head[4:])) + chunkHeader
	parts := imageParts{kind: string(head[fileHeader:][:4])}
	if end > file.Size() {
		return parts
	}
	if parts.pixels = fileHeader; parts.kind != first {
		return parts
	}
	parts.flags = head[fileHeader+chunkHeader]
	if parts.flags&(webpExif|webpProfile) == 0 {
		return parts
	}
	for at := int64(fileHeader); at+chunkHeader <= end; {
		chunk := head[:chunkHeader]
		if _, err := file.ReadAt(chunk, at); err != nil {
			return parts
		}
		length := int64(binary.LittleEndian.Uint32(chunk[4:]))
		start := at + chunkHeader
		switch string(chunk[:4]) {
		case "EXIF":
			if parts.flags&webpExif != 0 {
				parts.exif = span{start, min(start+length, end)}
			}
			return parts
		case "ICCP":
			parts.profile = []span{{start, min(start+length, end)}}
			if parts.flags&webpExif == 0 {
				return parts
			}
		}
		at = start + length + length%2
	}
	return parts
}

// The orientation is the only metadata that is read, and it is read without a library: metadata is a graph that its
// author controls, and a file of a few megabytes can keep a library that follows it busy for minutes.

// Values of the EXIF tag Orientation (EXIF 2.32, section 4.6.4): an upright picture, and the range for rotations by 90
// or 270 degrees, mirrored or not.
const upright, firstTurned, lastTurned = 1, 5, 8

// orientation reads the tag in the metadata's first directory, which has the format of a TIFF file (TIFF 6.0, section
// 2). Unreadable metadata does not rotate the picture: viewers ignore it too.
func orientation(file *store.BlockReader, exif span) int {
	const (
		header, entryLength = 8, 12
		tag, isShort        = 0x0112, 3
	)
	var buffer [entryLength]byte
	read := func(at int64, length int) bool {
		if at < exif.start || at+int64(length) > exif.end {
			return false
		}
		_, err := file.ReadAt(buffer[:length], at)
		return err == nil
	}
	// JPEG requires this prefix, and some programs put it into other formats.
	if read(exif.start, len(jpegExif)) && string(buffer[:len(jpegExif)]) == jpegExif {
		exif.start += int64(len(jpegExif))
	}
	if !read(exif.start, header) {
		return upright
	}
	var order binary.ByteOrder
	switch string(buffer[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return upright
	}
	at := exif.start + int64(order.Uint32(buffer[4:]))
	if !read(at, 2) {
		return upright
	}
	at += 2
	for range order.Uint16(buffer[:]) {
		if !read(at, entryLength) {
			return upright
		}
		if order.Uint16(buffer[:]) == tag && order.Uint16(buffer[2:]) == isShort && order.Uint32(buffer[4:]) == 1 {
			if value := int(order.Uint16(buffer[8:])); value >= upright && value <= lastTurned {
				return value
			}
			return upright
		}
		at += entryLength
	}
	return upright
}
