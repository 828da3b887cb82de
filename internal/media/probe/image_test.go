// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/media/probe"
)

// withThumbnail puts a small picture into the metadata of a JPEG, as cameras do.
func withThumbnail(picture, thumbnail []byte) []byte {
	exif := join("Exif\x00\x00MM\x00*", words(8), []byte{0, 0}, words(0), thumbnail)
	return join(picture[:2], "\xff\xe1", binary.BigEndian.AppendUint16(nil, uint16(len(exif)+2)), exif, picture[2:])
}

// riff returns a WebP with the given chunks.
func riff(chunks ...any) []byte {
	body := join("WEBP", join(chunks...))
	return join("RIFF", binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body)
}

// orientation returns metadata that contains only an orientation.
func orientation(order binary.AppendByteOrder, value uint16) []byte {
	mark := map[bool]string{true: "MM", false: "II"}[order == binary.AppendByteOrder(binary.BigEndian)]
	b := order.AppendUint16([]byte(mark), 42)
	b = order.AppendUint32(b, 8)
	for _, n := range []uint16{2, 0x0100, 3} {
		b = order.AppendUint16(b, n)
	}
	b = order.AppendUint32(order.AppendUint32(b, 1), 0)
	b = order.AppendUint16(order.AppendUint16(b, 0x0112), 3)
	b = order.AppendUint16(order.AppendUint32(b, 1), value)
	return append(b, 0, 0, 0, 0, 0, 0)
}

func TestProbeImages(t *testing.T) {
	jpeg, png, webp := file(t, "picture.jpg"), file(t, "picture.png"), file(t, "picture.webp")
	const pngHeader, riffHeader = 33, 12
	extended := func(flags byte) []byte { return []byte{10, 0, 0, 0, flags, 0, 0, 0, 63, 0, 0, 47, 0, 0} }
	exif := orientation(binary.LittleEndian, 8)
	exifChunk := join("EXIF", binary.LittleEndian.AppendUint32(nil, uint32(len(exif))), exif)
	const hasExif = 8
	thumbnailed := withThumbnail(jpeg, jpeg)
	motion := make([]byte, 300<<10)
	for name, tc := range map[string]struct {
		why      string
		data     []byte
		declared string
		// width is the expected width. If there is none, says is a part of the expected message.
		width int32
		says  string
	}{
		"jpeg with a thumbnail":          {"cameras embed a thumbnail", thumbnailed, jpegType, 64, ""},
		"cut jpeg with a thumbnail":      {"the thumbnail has its own end marker", thumbnailed[:len(thumbnailed)-100], jpegType, 0, "cut off"},
		"jpeg cut before its pixels":     {"only the thumbnail exists", thumbnailed[:len(jpeg)+300], jpegType, 0, "cut off"},
		"jpeg and a preview":             {"cameras append another picture", join(jpeg, jpeg), jpegType, 64, ""},
		"jpeg and a film":                {"phones append a short film", join(jpeg, motion), jpegType, 64, ""},
		"cut jpeg and noise":             {"appended data does not end the picture", join(jpeg[:len(jpeg)-100], motion), jpegType, 0, "cut off"},
		"jpeg without its end":           {"every pixel exists", jpeg[:len(jpeg)-2], jpegType, 64, ""},
		"jpeg without its end and noise": {"appended data may be mistaken for pixels", join(jpeg[:len(jpeg)-2], motion), jpegType, 0, "cut off"},
		"jpeg with an end across a read": {"the end may lie anywhere", join(jpeg, make([]byte, 64<<10-1)), jpegType, 64, ""},
		"jpeg with filling":              {"decoders pass over it", join(jpeg[:2], "\xff\xff\xff\xff", jpeg[3:]), jpegType, 64, ""},
		"jpeg with other metadata":       {"other APP1 segments do not contain an orientation", join(jpeg[:2], "\xff\xe1\x00\x08Exif!!", turnedJPEG(jpeg, 6)[2:]), jpegType, 48, ""},
		"jpeg with broken metadata":      {"viewers pass over it", join(jpeg[:2], "\xff\xe1\x00\x0cExif\x00\x00MM\x00*", jpeg[2:]), jpegType, 64, ""},
		"turned png":                     {"PNG has metadata too", join(png[:pngHeader], chunk("eXIf", orientation(binary.BigEndian, 6)), png[pngHeader:]), pngType, 48, ""},
		"animated png": {
			"most viewers treat an APNG as a PNG",
			join(png[:pngHeader], chunk("acTL", words(2, 0)), png[pngHeader:]), pngType, 64, "",
		},
		"png and more": {"some programs append data", join(png, motion), pngType, 64, ""},
		"cut png with a picture in it": {
			"its end is not that of the file",
			join(png[:pngHeader], chunk("eXIf", png), png[pngHeader:len(png)-12]), pngType, 0, "cut off",
		},
		"png without pixels": {"a header is no picture", join(png[:pngHeader], chunk("IEND", nil)), pngType, 0, "cut off"},
		"turned webp":        {"WebP has metadata too", riff("VP8X", extended(hasExif), webp[riffHeader:], exifChunk), webpType, 48, ""},
		"webp in jpeg's way": {"some programs put JPEG's mark in front", riff("VP8X", extended(hasExif), webp[riffHeader:],
			"EXIF", binary.LittleEndian.AppendUint32(nil, uint32(len(exif)+6)), "Exif\x00\x00", exif), webpType, 48, ""},
		"webp that denies it": {"undeclared chunks are ignored", riff("VP8X", extended(0), webp[riffHeader:], exifChunk), webpType, 64, ""},
		"webp that lacks it":  {"declared chunks may be missing", riff("VP8X", extended(hasExif), webp[riffHeader:]), webpType, 64, ""},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := probe.Probe(bytes.NewReader(tc.data), int64(len(tc.data)), tc.declared)
			var problem *probe.InvalidFileError
			switch {
			case tc.says == "" && (err != nil || facts.Width != tc.width):
				t.Errorf("%s: got %+v, %v, want a width of %d", tc.why, facts, err, tc.width)
			case tc.says != "" && (!errors.As(err, &problem) || !strings.Contains(problem.Message, tc.says)):
				t.Errorf("%s: got %+v, %v, want %q", tc.why, facts, err, tc.says)
			}
		})
	}
}

func TestProbeRejectsTruncatedFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		declared string
		data     []byte
		// mark is the number of bytes at the end that may be missing.
		mark int
	}{
		"jpeg":                  {jpegType, file(t, "picture.jpg"), 2},
		"jpeg with a thumbnail": {jpegType, withThumbnail(file(t, "picture.jpg"), file(t, "picture.jpg")), 2},
		"png":                   {pngType, file(t, "picture.png"), 0},
		"webp":                  {webpType, file(t, "picture.webp"), 0},
		"index first":           {mp4Type, file(t, "faststart.mp4"), 0},
		"index last":            {mp4Type, file(t, "tail.mp4"), 0},
		"quicktime":             {movType, file(t, "quicktime.mov"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			for n := range len(tc.data) - tc.mark {
				facts, err := probe.Probe(bytes.NewReader(tc.data[:n]), int64(n), tc.declared)
				if problem := new(probe.InvalidFileError); !errors.As(err, &problem) {
					t.Errorf("the first %d of %d bytes: got %+v, %v", n, len(tc.data), facts, err)
				}
			}
		})
	}
}
