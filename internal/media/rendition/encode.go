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

// qualities are those at which a JPEG is tried, until it is small enough.
var qualities = []int{90, 85, 80, 75, 65}

// errTooLong ends the writing of a file that has more bytes than it may.
var errTooLong = errors.New("the file is too long")

// bounded is a file in memory that must not become longer than its bound, if that
// is not zero. Encoders write no colour profiles: extra is inserted later, behind the
// first bytes of the file, and counts.
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

// file returns the file, of which so many bytes precede what is extra. A file that
// is too long is nil.
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

// encodeJPEG writes a picture at the best quality at which it has no more than
// the bound; nil if there is none. The profile says what its colours mean.
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

// encodePNG writes a picture; nil if it has more bytes than the bound.
func encodePNG(picture *image.RGBA, profile []byte, bound int64) ([]byte, error) {
	extra, err := pngProfile(profile)
	if err != nil {
		return nil, err
	}
	out := &bounded{bound: bound, extra: extra}
	return out.file(pngStart, png.Encode(out, picture))
}

const (
	// jpegStart is how long the mark is that a JPEG begins with, and pngStart
	// how long a PNG's signature and header are.
	jpegStart = 2
	pngStart  = 8 + 25
)

// jpegProfile is a colour profile as JPEG holds it, in parts of 64 KiB (ICC.1,
// annex B.4); nil if there is none.
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

// pngProfile is a colour profile as PNG holds it (third edition, section
// 11.3.2.3); nil if there is none.
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
