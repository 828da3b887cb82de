// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Header is what must be known about an image before it is decoded.
type Header struct {
	// Width and Height are in pixels, as they are stored.
	Width, Height int
	// Orientation is how the stored picture is to be turned to be shown, from 1
	// (not at all) to 8 (EXIF 2.32, section 4.6.4).
	Orientation int
	// Profile says what the colours mean, as an ICC profile; nil for sRGB.
	Profile []byte
	// DecodedBytes estimates the memory of the decoded picture and of its
	// decoding. It may be a thousand times the length of the file.
	DecodedBytes int64
	// Animated says that the picture moves.
	Animated bool
}

// longestProfile bounds a colour profile. Those of screens and cameras have some
// kilobytes; longer ones describe printing.
const longestProfile = 1 << 20

// ReadHeader reads the header of an image of this size and type. The error is a
// *Problem if the file is at fault; any other is from reading it.
func ReadHeader(r io.ReaderAt, size int64, mimeType string) (Header, error) {
	file := newBlocks(r, size)
	h, err := header(file, size, v1alpha1.MimeType(mimeType))
	if failure := file.failure(); failure != nil && !errors.Is(failure, errTooMuch) {
		return Header{}, failure
	}
	return h, err
}

func header(file *blocks, size int64, mimeType v1alpha1.MimeType) (Header, error) {
	format, ok := imageFormats[mimeType]
	if !ok {
		return Header{}, &Problem{Reason: v1alpha1.ReasonWrongType, Message: "Only JPEG, PNG and WebP images can be converted."}
	}
	config, err := format.config(io.NewSectionReader(file, 0, size))
	if err != nil || config.Width <= 0 || config.Height <= 0 {
		return Header{}, damaged("The image is damaged: its header cannot be read. Export it again.")
	}
	parts := format.look(file)
	return Header{
		Width: config.Width, Height: config.Height, Orientation: orientation(file, parts.exif),
		Profile:      profile(file, parts.profile, mimeType),
		DecodedBytes: format.memory(file, parts, int64(config.Width)*int64(config.Height)),
		Animated:     parts.flags&webpAnimation != 0,
	}, nil
}

// profile reads the parts of a colour profile; nil if it is none, or too long.
func profile(file *blocks, parts []span, mimeType v1alpha1.MimeType) []byte {
	var all []byte
	for _, part := range parts {
		length := part.end - part.start
		if length <= 0 || int64(len(all))+length > longestProfile {
			return nil
		}
		data := make([]byte, length)
		if _, err := file.ReadAt(data, part.start); err != nil {
			return nil
		}
		all = append(all, data...)
	}
	if mimeType != v1alpha1.MimePNG || all == nil {
		return all
	}
	// A name, a zero, a zero for the method, and the compressed profile.
	_, packed, ok := bytes.Cut(all, []byte{0, 0})
	if !ok {
		return nil
	}
	unpacked, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}
	all, err = io.ReadAll(io.LimitReader(unpacked, longestProfile+1))
	if err != nil || len(all) > longestProfile {
		return nil
	}
	return all
}

// jpegBytes estimates what the decoding of a JPEG takes (ITU-T T.81, section
// B.2.2): colours are often stored for fewer points than brightness, and one
// that is built up in several scans holds four bytes for each value beside it.
func jpegBytes(file *blocks, parts imageParts, pixels int64) int64 {
	const head, entry, mostComponents = 6, 3, 4
	const progressive = 0xc2
	data := make([]byte, min(parts.frame.end-parts.frame.start, head+mostComponents*entry))
	if _, err := file.ReadAt(data, parts.frame.start); err != nil || len(data) < head {
		return pixels * head * mostComponents
	}
	var values, most int64
	components, ids := 0, ""
	for at := head; at+entry <= len(data); at += entry {
		share := int64(data[at+1]>>4) * int64(data[at+1]&0xf)
		values, most = values+share, max(most, share)
		components++
		ids += string(data[at : at+1])
	}
	most = max(most, 1)
	total := pixels * values / most
	if parts.frameKind == progressive {
		total *= 5
	}
	if components == mostComponents || ids == "RGB" || parts.unchanged {
		// Other colours than the usual ones are converted into a copy.
		total += pixels * 4
	}
	return total
}

// pngBytes estimates what the decoding of a PNG takes (PNG, third edition,
// section 11.2.1).
func pngBytes(file *blocks, _ imageParts, pixels int64) int64 {
	const depthAt, length, deep, paletted = 24, 5, 16, 3
	var head [length]byte
	if _, err := file.ReadAt(head[:], depthAt); err != nil {
		return pixels * 8
	}
	total := pixels * 4
	switch {
	case head[0] == deep:
		total = pixels * 8
	case head[1] == paletted:
		total = pixels
	}
	if interlaced := head[4] != 0; interlaced {
		total += total / 2
	}
	return total
}

// webpBytes estimates what the decoding of a WebP takes. A lossy picture stores
// colours for every fourth point; a lossless one stores four bytes for each point,
// which are unpacked into a copy. Transparency is lossless, and an extended file
// may hold either. The decoder holds the file, too.
func webpBytes(file *blocks, parts imageParts, pixels int64) int64 {
	if parts.kind == "VP8 " {
		return pixels*3/2 + file.size
	}
	return pixels*10 + file.size
}
