// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"compress/zlib"
	"errors"
	"image/jpeg"
	"image/png"
	"io"
	"math"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

// Header holds the properties of an image that are needed before it is decoded.
type Header struct {
	// Width and Height are in pixels, as they are stored.
	Width, Height int
	// Orientation is the rotation of the stored picture for display, from 1 (not at all) to 8 (EXIF 2.32, section 4.6.4).
	Orientation int
	// Profile is the ICC profile of the colors, or nil for sRGB.
	Profile []byte
	// Inks means that the image has four color components (CMYK or YCCK).
	Inks bool
	// Gamma is the exponent of a PNG's light values (gAMA, cICP), unless a chunk with higher precedence is present (PNG,
	// third edition, section 4.3). It is zero for sRGB.
	Gamma float64
	// DecodedBytes estimates the memory for decoding, including the picture. It may be a thousand times the file's length.
	DecodedBytes int64
	// Animated means that the picture moves.
	Animated bool
	// MultiPicture means that a JPEG contains more than one picture: another view, or the gain map of an HDR picture
	// (CIPA DC-007, ISO 21496-1).
	MultiPicture bool
	// Unconvertible is the property of the image that prevents any conversion, with the remedy, phrased to follow "the
	// file". It is empty if the image can be converted.
	Unconvertible string
}

// longestProfile limits a color profile, and longestPrint a printing profile. Profiles for screens and cameras take a
// few kilobytes, printing profiles up to a few megabytes.
const longestProfile, longestPrint = 1 << 20, 4 << 20

// ReadHeader reads the header of an image with the given size and type. The error is an *InvalidFileError if the file
// is at fault; any other comes from reading it.
func ReadHeader(r io.ReaderAt, size int64, mimeType string) (Header, error) {
	file := store.NewBlockReader(r, size, budget)
	h, parts, err := header(file, size, v1alpha1.MimeType(mimeType))
	if err == nil {
		h.Profile = parts.colorSpace().profile(file, &parts, h.Inks)
	}
	if failure := file.Failure(); failure != nil && !errors.Is(failure, store.ErrReadBudget) {
		return Header{}, failure
	}
	return h, err
}

func header(file *store.BlockReader, size int64, mimeType v1alpha1.MimeType) (Header, imageParts, error) {
	format, ok := imageFormats[mimeType]
	if !ok {
		return Header{}, imageParts{}, &InvalidFileError{Reason: v1alpha1.ReasonWrongType, Message: "Only JPEG, PNG and WebP images can be converted."}
	}
	parts := format.parse(file)
	frame, framed := readFrame(file, &parts)
	if cause := frame.unreadable(parts.adobe); framed && cause != "" {
		return Header{}, parts, unsupported("Herald cannot read JPEGs with %s. Export it again, as an ordinary JPEG (baseline or progressive, 8 bits a channel).", cause)
	}
	config, err := format.config(io.NewSectionReader(file, 0, size))
	if err != nil {
		return Header{}, parts, headerError(err)
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > math.MaxInt32 || config.Height > math.MaxInt32 {
		return Header{}, parts, damaged("The image is damaged: its header gives it %d × %d pixels. Export it again.", config.Width, config.Height)
	}
	m := parts.colorSpace()
	h := Header{
		Width: config.Width, Height: config.Height, Orientation: orientation(file, parts.exif),
		Inks: len(frame.components) == maxComponents, Gamma: m.gamma,
		DecodedBytes: format.memory(file, &parts, int64(config.Width)*int64(config.Height)),
		Animated:     parts.flags&webpAnimation != 0,
		MultiPicture: parts.several,
	}
	h.Unconvertible = unconvertible(file, &h, &parts, m)
	return h, parts, nil
}

func headerError(err error) *InvalidFileError {
	_, oddJPEG := errors.AsType[jpeg.UnsupportedError](err)
	_, oddPNG := errors.AsType[png.UnsupportedError](err)
	if oddJPEG || oddPNG {
		return unsupported("Herald cannot read images of this kind (%v). Export it again, as an ordinary JPEG or PNG.", err)
	}
	return damaged("The image is damaged: its header cannot be read (%v). Export it again.", err)
}

func unconvertible(file *store.BlockReader, h *Header, parts *imageParts, m colorSpace) string {
	if h.Animated {
		return "is an animation, which the platform does not accept; upload a still JPEG, or a video"
	}
	if h.Inks {
		if printed, convertible := printing(file, parts.profile); printed && !convertible {
			return "is a CMYK picture with a profile for print that Herald cannot read, so that its colours would change; export it as sRGB and upload that"
		}
	}
	return m.refused
}

// profile returns an image's ICC profile, or nil if it has none or its profile is too long.
func (m colorSpace) profile(file *store.BlockReader, parts *imageParts, inks bool) []byte {
	switch {
	case m.primaries != nil:
		return m.primaries.iccProfile()
	case m.coded:
		return nil
	case inks:
		return joined(file, parts.profile, longestPrint)
	case parts.packed:
		return unpacked(joined(file, parts.profile, longestProfile))
	default:
		return joined(file, parts.profile, longestProfile)
	}
}

// joined reads the parts of a color profile. It returns nil if there is none or it is too long.
func joined(file *store.BlockReader, parts []span, longest int64) []byte {
	var all []byte
	for _, part := range parts {
		length := part.end - part.start
		if length <= 0 || int64(len(all))+length > longest {
			return nil
		}
		data := make([]byte, length)
		if _, err := file.ReadAt(data, part.start); err != nil {
			return nil
		}
		all = append(all, data...)
	}
	return all
}

// unpacked returns the profile in a PNG's iCCP chunk: a name, a zero, a zero for the method, and compressed data.
func unpacked(chunk []byte) []byte {
	_, packed, ok := bytes.Cut(chunk, []byte{0, 0})
	if !ok {
		return nil
	}
	content, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}
	all, err := io.ReadAll(io.LimitReader(content, longestProfile+1))
	if err != nil || len(all) > longestProfile {
		return nil
	}
	return all
}

func jpegBytes(file *store.BlockReader, parts *imageParts, pixels int64) int64 {
	const most = 24
	frame, ok := readFrame(file, parts)
	if !ok {
		return pixels * most
	}
	return frame.memory(pixels, parts.unchanged)
}

// pngBytes estimates the memory for decoding a PNG (PNG, third edition, section 11.2.1).
func pngBytes(file *store.BlockReader, _ *imageParts, pixels int64) int64 {
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

// webpBytes estimates the memory for decoding a WebP. A lossy picture stores colors for every fourth pixel. A lossless
// one stores four bytes per pixel, which are unpacked into a copy. Transparency is lossless, and an extended file may
// have either form. The decoder also holds the file.
func webpBytes(file *store.BlockReader, parts *imageParts, pixels int64) int64 {
	if parts.kind == "VP8 " {
		return pixels*3/2 + file.Size()
	}
	return pixels*10 + file.Size()
}
