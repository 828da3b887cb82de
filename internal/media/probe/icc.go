// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf16"

	"github.com/herald-social/herald/internal/media/store"
)

// Offsets in a profile's header (ICC.1, section 7.2): the color space, the connection space, and the number of parts.
const (
	iccSpaceAt, iccConnectionAt, iccCountAt = 16, 20, 128

	iccHeader, iccEntry = 132, 12
)

// readAcross fills p with data that spans several parts of a file, starting at the given offset in that data.
func readAcross(file *store.BlockReader, parts []span, p []byte, at int64) bool {
	for _, part := range parts {
		length := part.end - part.start
		if at >= length {
			at -= length
			continue
		}
		n := min(length-at, int64(len(p)))
		if _, err := file.ReadAt(p[:n], part.start+at); err != nil {
			return false
		}
		if p, at = p[n:], 0; len(p) == 0 {
			return true
		}
	}
	return len(p) == 0
}

// printing reports whether a profile describes inks, and whether Herald can convert from them: it has a table from inks
// to the connection space (ICC.1, section 8.3: A2B0 with the types lut8, lut16 and lutAToB).
func printing(file *store.BlockReader, parts []span) (inks, convertible bool) {
	const most = 100
	var head [iccHeader]byte
	if !readAcross(file, parts, head[:], 0) || string(head[iccSpaceAt:][:4]) != "CMYK" {
		return false, false
	}
	var length int64
	for _, part := range parts {
		length += part.end - part.start
	}
	if seen := string(head[iccConnectionAt:][:4]); length > longestPrint || seen != "Lab " && seen != "XYZ " {
		return true, false
	}
	for i := range min(binary.BigEndian.Uint32(head[iccCountAt:]), most) {
		var entry [iccEntry]byte
		if !readAcross(file, parts, entry[:], iccHeader+int64(i)*iccEntry) {
			break
		}
		if string(entry[:4]) != "A2B0" {
			continue
		}
		var kind [4]byte
		found := readAcross(file, parts, kind[:], int64(binary.BigEndian.Uint32(entry[4:])))
		return true, found && slices.Contains([]string{"mft1", "mft2", "mAB "}, string(kind[:]))
	}
	return true, false
}

type matrix [3][3]float64

func (m matrix) times(o matrix) (product matrix) {
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				product[i][j] += m[i][k] * o[k][j]
			}
		}
	}
	return product
}

func (m matrix) of(v [3]float64) (product [3]float64) {
	for i := range 3 {
		for k := range 3 {
			product[i] += m[i][k] * v[k]
		}
	}
	return product
}

// inverse returns the inverse matrix. ok is false if there is none.
func (m matrix) inverse() (inverse matrix, ok bool) {
	const flat = 1e-6
	cofactor := func(i, j int) float64 {
		a, b, c, d := (i+1)%3, (i+2)%3, (j+1)%3, (j+2)%3
		return m[a][c]*m[b][d] - m[a][d]*m[b][c]
	}
	determinant := m[0][0]*cofactor(0, 0) + m[0][1]*cofactor(0, 1) + m[0][2]*cofactor(0, 2)
	if math.Abs(determinant) < flat {
		return matrix{}, false
	}
	for i := range 3 {
		for j := range 3 {
			inverse[j][i] = cofactor(i, j) / determinant
		}
	}
	return inverse, true
}

// d50 is white in profiles (ICC.1, section 7.2.16), and bradford is the matrix that adapts to it (annex E.3).
var (
	d50      = [3]float64{0.9642, 1, 0.8249}
	bradford = matrix{{0.8951, 0.2664, -0.1614}, {-0.7502, 1.7135, 0.0367}, {0.0389, -0.0685, 1.0296}}
)

// toD50 returns the matrix from red, green and blue to CIE XYZ in profiles, or false if the primaries span no colors.
func (p *primaries) toD50() (m matrix, ok bool) {
	seen := func(i int) [3]float64 { return [3]float64{p[i].x / p[i].y, 1, (1 - p[i].x - p[i].y) / p[i].y} }
	for channel := range 3 {
		for i, v := range seen(channel + 1) {
			m[i][channel] = v
		}
	}
	inverse, ok := m.inverse()
	back, _ := bradford.inverse()
	if !ok {
		return matrix{}, false
	}
	white := seen(0)
	amounts, from, to := inverse.of(white), bradford.of(white), bradford.of(d50)
	var adapt matrix
	for i := range 3 {
		if amounts[i] <= 0 || from[i] <= 0 {
			return matrix{}, false
		}
		adapt[i][i] = to[i] / from[i]
		for j := range 3 {
			m[j][i] *= amounts[i]
		}
	}
	return back.times(adapt).times(bradford).times(m), true
}

// iccProfile returns a profile for these primaries with the sRGB transfer curve (ICC.1, section 8.4.3).
func (p *primaries) iccProfile() []byte {
	columns, ok := p.toD50()
	if !ok {
		return nil
	}
	fixed := func(out []byte, values ...float64) []byte {
		for _, v := range values {
			out = binary.BigEndian.AppendUint32(out, uint32(int32(math.Round(v*(1<<16))))) //nolint:gosec // a number with a sign, as its bits
		}
		return out
	}
	column := func(i int) []byte {
		return fixed([]byte("XYZ \x00\x00\x00\x00"), columns[0][i], columns[1][i], columns[2][i])
	}
	// The sRGB curve (IEC 61966-2-1), as a type 3 parametric curve.
	curve := fixed([]byte("para\x00\x00\x00\x00\x00\x03\x00\x00"), 2.4, 1/1.055, 0.055/1.055, 1/12.92, 0.04045)
	white := fixed([]byte("XYZ \x00\x00\x00\x00"), d50[0], d50[1], d50[2])
	tags := []struct {
		name    string
		content []byte
	}{
		{"desc", iccText("RGB with the curve of sRGB")},
		{"cprt", iccText("CC0")},
		{"wtpt", white},
		{"rXYZ", column(0)},
		{"gXYZ", column(1)},
		{"bXYZ", column(2)},
		{"rTRC", curve},
		{"gTRC", curve},
		{"bTRC", curve},
	}
	table := binary.BigEndian.AppendUint32(nil, uint32(len(tags))) //nolint:gosec // there are nine
	start := iccHeader + iccEntry*len(tags)
	var contents []byte
	for _, tag := range tags {
		table = append(table, tag.name...)
		table = binary.BigEndian.AppendUint32(table, uint32(start+len(contents))) //nolint:gosec // a profile has a few hundred bytes
		table = binary.BigEndian.AppendUint32(table, uint32(len(tag.content)))    //nolint:gosec // a profile has a few hundred bytes
		contents = append(contents, tag.content...)
		contents = append(contents, make([]byte, -len(contents)&3)...)
	}
	// Zeros stand for the preferred program, flags, maker, device and intent (perceptual).
	head := binary.BigEndian.AppendUint32(nil, uint32(start+len(contents))) //nolint:gosec // a profile has a few hundred bytes
	head = append(head, "\x00\x00\x00\x00\x04\x30\x00\x00mntrRGB XYZ "...)
	head = append(head, 0x07, 0xe8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0) // A fixed date: the same picture gives the same file.
	head = append(append(head, "acsp"...), make([]byte, 28)...)
	head = fixed(head, d50[0], d50[1], d50[2])
	head = append(head, make([]byte, iccCountAt-len(head))...)
	return slices.Concat(head, table, contents)
}

// iccText returns text in the form that profiles store (ICC.1, section 10.15).
func iccText(text string) []byte {
	const at = 28
	units := utf16.Encode([]rune(text))
	out := append([]byte("mluc\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0cenUS"), binary.BigEndian.AppendUint32(nil, uint32(2*len(units)))...) //nolint:gosec // a short text
	out = binary.BigEndian.AppendUint32(out, at)
	for _, unit := range units {
		out = binary.BigEndian.AppendUint16(out, unit)
	}
	return out
}
