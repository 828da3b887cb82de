// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"slices"
)

// qualities are the JPEG qualities that are tried in this order until the file is small enough.
var qualities = []int{90, 85, 80, 75, 65}

// errTooLong aborts writing a file that exceeds its limit.
var errTooLong = errors.New("the file is too long")

// bounded is a file in memory that must not exceed its bound, unless that is zero. Encoders do not write color
// profiles: extra is inserted later, after the file's first bytes, and counts towards the bound.
type bounded struct {
	bytes.Buffer

	bound int64
	extra []byte
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.bound > 0 && int64(b.Len()+len(p)+len(b.extra)) > b.bound {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}

// file returns the file, with extra inserted after its first bytes. If the file is too long, it returns nil.
func (b *bounded) file(first int, err error) ([]byte, error) {
	switch {
	case errors.Is(err, errTooLong):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return slices.Insert(b.Bytes(), first, b.extra...), nil
	}
}

// encodeJPEG encodes a picture at the best quality within the bound, or returns nil. The profile defines its colors.
func encodeJPEG(picture *image.RGBA, profile []byte, bound int64) ([]byte, error) {
	for _, quality := range qualities {
		out := &bounded{bound: bound, extra: jpegProfile(profile)}
		err := jpeg.Encode(out, picture, &jpeg.Options{Quality: quality})
		if data, err := out.file(jpegStart, err); data != nil || err != nil {
			return data, err
		}
	}
	return nil, nil
}

// encodePNG encodes a picture. It returns nil if the result exceeds the bound.
func encodePNG(picture *image.RGBA, profile []byte, bound int64) ([]byte, error) {
	extra, err := pngProfile(profile)
	if err != nil {
		return nil, err
	}
	out := &bounded{bound: bound, extra: extra}
	return out.file(pngStart, png.Encode(out, picture))
}

const (
	// jpegStart is the length of a JPEG's first marker, and pngStart that of a PNG's signature and header.
	jpegStart = 2
	pngStart  = 8 + 25
)

// jpegProfile returns a color profile as a JPEG stores it, in parts of 64 KiB (ICC.1, annex B.4), or nil for none.
func jpegProfile(profile []byte) []byte {
	const name, longest = "ICC_PROFILE\x00", 0xffff - 2 - 14
	var out []byte
	count := (len(profile) + longest - 1) / longest
	for i := range count {
		part := profile[i*longest : min((i+1)*longest, len(profile))]
		out = append(out, 0xff, 0xe2)
		out = binary.BigEndian.AppendUint16(out, uint16(2+len(name)+2+len(part))) //nolint:gosec // by its bound
		out = append(append(out, name...), byte(i+1), byte(count))                //nolint:gosec // a profile has a megabyte at most
		out = append(out, part...)
	}
	return out
}

// pngProfile returns a color profile as a PNG stores it (third edition, section 11.3.2.3), or nil if there is none.
func pngProfile(profile []byte) ([]byte, error) {
	if len(profile) == 0 {
		return nil, nil
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(profile); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	const head = "iCCPICC profile\x00\x00"
	out := binary.BigEndian.AppendUint32(nil, uint32(len(head)-4+packed.Len())) //nolint:gosec // a profile has a megabyte at most
	out = append(append(out, head...), packed.Bytes()...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:])), nil
}
