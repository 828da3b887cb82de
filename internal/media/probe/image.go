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
	"github.com/herald-social/herald/internal/media/blocks"
)

// imageFormat is how one kind of image is read.
type imageFormat struct {
	config func(io.Reader) (image.Config, error)
	// parse finds the parts of the file that Herald needs.
	parse func(file *blocks.Reader) imageParts
	// memory estimates the bytes of decoding so many pixels.
	memory func(file *blocks.Reader, parts *imageParts, pixels int64) int64
	// complete goes through the pixels. It reports whether all are there, and says what of
	// them is damaged.
	complete func(file *blocks.Reader, parts *imageParts) (whole bool, damage string)
}

// imageParts are the parts of an image.
type imageParts struct {
	// pixels is where the pixels begin; zero if they do not. damage says what is wrong with
	// what precedes them.
	pixels int64
	damage string
	// exif is where the metadata is that may rotate the picture; the zero value
	// if there is none.
	exif span
	// profile is where the parts of the colour profile are; packed says that they are
	// compressed, as in a PNG.
	profile []span
	packed  bool
	// colors is what else a PNG says of them.
	colors pngColors
	// frame is where a JPEG says how its pixels are stored, after the marker
	// frameKind. adobe says that Adobe's part tells what the channels are, and unchanged
	// that they are those that are shown. several is Header.MultiPicture. tables are
	// the last parts that are needed to decode the pixels, and scan begins them.
	frame            span
	frameKind        byte
	adobe, unchanged bool
	several          bool
	tables           []jpegTable
	scan             span
	// kind and flags are those of a WebP's first chunk.
	kind  string
	flags byte
}

// colorSpace says how the colours are to be read.
func (p *imageParts) colorSpace() colorSpace { return p.colors.colorSpace(len(p.profile) > 0) }

// span is a part of a file, by offsets.
type span struct{ start, end int64 }

var imageFormats = map[v1alpha1.MimeType]imageFormat{
	v1alpha1.MimeJPEG: {jpeg.DecodeConfig, jpegParts, jpegBytes, jpegComplete},
	v1alpha1.MimePNG:  {pngConfig, pngParts, pngBytes, pngComplete},
	v1alpha1.MimeWebP: {webpConfig, webpParts, webpBytes, webpComplete},
}

// picture examines an image without decoding it: its header, its orientation
// and its end.
func picture(file *blocks.Reader, size int64, mimeType v1alpha1.MimeType) (Facts, error) {
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

// endBytes is how much of the end of a file is searched first for the mark that
// ends the picture. Some cameras append data of their own, as much as a short film: if
// it is not there, the search begins at the pixels.
const endBytes = 64 << 10

// contains searches a part of a file.
func contains(file *blocks.Reader, in span, mark string) bool {
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

// pngConfig reads the header of a PNG, which damage in texts does not hinder.
func pngConfig(r io.Reader) (image.Config, error) { return png.DecodeConfig(&Chunks{From: r}) }

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

// webpComplete reports whether a WebP is as long as it says.
func webpComplete(_ *blocks.Reader, parts *imageParts) (whole bool, damage string) {
	return parts.pixels != 0, ""
}

// webpParts reads the parts of a WebP (RFC 9649, section 2).
func webpParts(file *blocks.Reader) imageParts {
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

// Of all metadata only the orientation is read, and here and not by a library:
// metadata is a graph that its author draws, and a file of a few megabytes can keep
// a library that follows it busy for minutes.

// Values of the EXIF tag Orientation (EXIF 2.32, section 4.6.4): an upright
// picture, and those for a turn by 90 or 270 degrees, mirrored or not.
const upright, firstTurned, lastTurned = 1, 5, 8

// orientation looks for the tag in the first directory of the metadata, which
// has the form of a TIFF file (TIFF 6.0, section 2). Metadata that cannot be read
// turns nothing: viewers ignore it too.
func orientation(file *blocks.Reader, exif span) int {
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
