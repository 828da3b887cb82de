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
)

// qualities are those at which a JPEG is tried, until it is small enough.
var qualities = []int{90, 85, 80, 75, 65}

// errTooLong ends the writing of a file that has more bytes than it may.
var errTooLong = errors.New("the file is too long")

// bounded is a file in memory that must not become longer than its bound.
type bounded struct {
	bytes.Buffer

	bound int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.bound > 0 && int64(b.Len()+len(p)) > b.bound {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}

// encodeJPEG writes a picture at the best quality at which it has no more than
// the bound; nil if there is none. The profile says what its colours mean.
func encodeJPEG(picture *image.RGBA, profile []byte, bound int64) ([]byte, error) {
	for _, quality := range qualities {
		out := &bounded{bound: bound}
		err := jpeg.Encode(&behind{out: out, first: jpegStart, extra: jpegProfile(profile)}, picture, &jpeg.Options{Quality: quality})
		if !errors.Is(err, errTooLong) {
			return out.Bytes(), err
		}
	}
	return nil, nil
}

// encodePNG writes a picture; nil if it has more bytes than the bound.
func encodePNG(picture *image.RGBA, profile []byte, bound int64) ([]byte, error) {
	out := &bounded{bound: bound}
	extra, err := pngProfile(profile)
	if err == nil {
		err = png.Encode(&behind{out: out, first: pngStart, extra: extra}, picture)
	}
	if errors.Is(err, errTooLong) {
		return nil, nil
	}
	return out.Bytes(), err
}

// behind inserts something behind the first bytes of a file: encoders write no
// colour profiles.
type behind struct {
	out     *bounded
	first   int
	extra   []byte
	written int
}

func (b *behind) Write(p []byte) (int, error) {
	if split := b.first - b.written; split >= 0 && split <= len(p) && b.extra != nil {
		whole := append(append(append([]byte(nil), p[:split]...), b.extra...), p[split:]...)
		b.extra, b.written = nil, b.written+len(p)
		_, err := b.out.Write(whole)
		return len(p), err
	}
	b.written += len(p)
	return b.out.Write(p)
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
