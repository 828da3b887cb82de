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
	"math"

	"golang.org/x/image/webp"

	"github.com/herald-social/herald/api/v1alpha1"
)

// imageFormat is how one kind of image is read.
type imageFormat struct {
	config func(io.Reader) (image.Config, error)
	// look finds the parts of the file that Herald needs.
	look func(file *blocks) imageParts
	// memory estimates the bytes of decoding so many pixels.
	memory func(file *blocks, parts imageParts, pixels int64) int64
}

// imageParts are the parts of an image.
type imageParts struct {
	// whole says that the end of the picture is there.
	whole bool
	// exif is where the metadata is that may rotate the picture; the zero value
	// if there is none.
	exif span
	// profile is where the parts of the colour profile are; in a PNG they are
	// compressed.
	profile []span
	// frame is where a JPEG says how its pixels are stored, after the marker
	// frameKind; unchanged says that they are red, green and blue. kind and flags
	// are those of a WebP's first chunk.
	frame     span
	frameKind byte
	unchanged bool
	kind      string
	flags     byte
}

// span is a part of a file, by offsets.
type span struct{ start, end int64 }

var imageFormats = map[v1alpha1.MimeType]imageFormat{
	v1alpha1.MimeJPEG: {jpeg.DecodeConfig, jpegParts, jpegBytes},
	v1alpha1.MimePNG:  {png.DecodeConfig, pngParts, pngBytes},
	v1alpha1.MimeWebP: {webpConfig, webpParts, webpBytes},
}

// picture examines an image without decoding it: its header, its orientation
// and its end.
func picture(file *blocks, size int64, mimeType v1alpha1.MimeType) (Facts, error) {
	format := imageFormats[mimeType]
	config, err := format.config(io.NewSectionReader(file, 0, size))
	if err != nil {
		return Facts{}, damaged("The image is damaged: its header cannot be read (%v). Export it again.", err)
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > math.MaxInt32 || config.Height > math.MaxInt32 {
		return Facts{}, damaged("The image is damaged: it says it is %d pixels wide and %d high. Export it again.", config.Width, config.Height)
	}
	parts := format.look(file)
	if !parts.whole {
		return Facts{}, damaged("The image is cut off: its end is missing. Upload the whole file.")
	}
	facts := Facts{Width: int32(config.Width), Height: int32(config.Height)}
	if orientation(file, parts.exif) >= firstTurned {
		facts.Width, facts.Height = facts.Height, facts.Width
	}
	return facts, nil
}

// endBytes is how much of the end of a file is searched first for the mark that
// ends the picture.
const endBytes = 64 << 10

// ends searches for the mark that ends a picture, after the offset at which its
// pixels begin. Some cameras append data of their own, as much as a short film: if
// the mark is not near the end of the file, the search begins at the pixels.
func ends(file *blocks, pixels int64, mark string) bool {
	last := max(pixels, file.size-endBytes)
	across := min(last+int64(len(mark))-1, file.size)
	return contains(file, span{last, file.size}, mark) || contains(file, span{pixels, across}, mark)
}

// contains searches a part of a file.
func contains(file *blocks, in span, mark string) bool {
	const step = 32 << 10
	buffer := make([]byte, step+len(mark)-1) // The mark may lie across two steps.
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

// pngParts reads the parts of a PNG up to its pixels (PNG, third edition,
// section 5). Like browsers, it ignores metadata after them.
func pngParts(file *blocks) imageParts {
	const (
		signature, header, sum = 8, 8, 4
		end                    = "\x00\x00\x00\x00IEND\xae\x42\x60\x82"
	)
	var parts imageParts
	var head [header]byte
	for at := int64(signature); ; {
		if _, err := file.ReadAt(head[:], at); err != nil {
			return parts
		}
		start := at + header
		at = start + int64(binary.BigEndian.Uint32(head[:])) + sum
		switch string(head[4:]) {
		case "eXIf":
			parts.exif = span{start, min(at-sum, file.size)}
		case "iCCP":
			parts.profile = []span{{start, min(at-sum, file.size)}}
		case "IDAT":
			parts.whole = ends(file, start, end)
			return parts
		}
	}
}

// What a WebP's first chunk announces (RFC 9649, section 2.7).
const (
	webpAnimation = 1 << 1
	webpExif      = 1 << 3
	webpAlpha     = 1 << 4
	webpProfile   = 1 << 5
)

// webpConfig reads the header of a WebP, which is in its first chunk; the
// library would look for it in all of them.
func webpConfig(r io.Reader) (image.Config, error) {
	const head = 1 << 10
	return webp.DecodeConfig(io.LimitReader(r, head))
}

// webpParts reads the parts of a WebP (RFC 9649, section 2).
func webpParts(file *blocks) imageParts {
	const (
		fileHeader, chunkHeader = 12, 8
		// The first chunk tells in its first byte what others there are.
		first = "VP8X"
	)
	var head [fileHeader + chunkHeader + 1]byte
	if _, err := file.ReadAt(head[:], 0); err != nil {
		return imageParts{}
	}
	// The file says how many bytes follow the first eight.
	end := int64(binary.LittleEndian.Uint32(head[4:])) + chunkHeader
	parts := imageParts{whole: end <= file.size, kind: string(head[fileHeader:][:4])}
	if !parts.whole || parts.kind != first {
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

// Of all metadata only the orientation is read, and here and not by a library:
// metadata is a graph that its author draws, and a file of a few megabytes can keep
// a library that follows it busy for minutes.

// Values of the EXIF tag Orientation (EXIF 2.32, section 4.6.4): an upright
// picture, and those for a turn by 90 or 270 degrees, mirrored or not.
const upright, firstTurned, lastTurned = 1, 5, 8

// orientation looks for the tag in the first directory of the metadata, which
// has the form of a TIFF file (TIFF 6.0, section 2). Metadata that cannot be read
// turns nothing: viewers ignore it too.
func orientation(file *blocks, exif span) int {
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
	// JPEG demands this prefix, and some programs put it into other formats.
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
