// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"image"
	"image/color"
)

// The color types of a PNG (third edition, section 11.2.1).
const pngGrey, pngColor, pngPalette, pngGreyAlpha, pngColorAlpha = 0, 2, 3, 4, 6

// pngFile describes an image's encoding.
type pngFile struct {
	picture     *image.NRGBA
	depth, kind int
	interlaced  bool
	// before and behind are chunks before and after the pixels.
	before, behind [][]byte
}

// pngSignature is the first bytes of every PNG.
const pngSignature = "\x89PNG\r\n\x1a\n"

func zipped(data []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	// Writing to a buffer never fails.
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

// passes lists the passes of an interlaced image: each pass's first point, and the distance between its points (section
// 8.1).
var passes = [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}

func (f *pngFile) encode() []byte {
	size := f.picture.Rect.Size()
	head := longs(binary.BigEndian, uint32(size.X), uint32(size.Y))
	head = append(head, byte(f.depth), byte(f.kind), 0, 0, 0)
	parts := passes
	if !f.interlaced {
		parts = [][4]int{{0, 0, 1, 1}}
	} else {
		head[12] = 1
	}
	var pixels []byte
	for _, p := range parts {
		for y := p[1]; y < size.Y; y += p[3] {
			if p[0] < size.X {
				pixels = append(pixels, f.row(p[0], p[2], y)...)
			}
		}
	}
	out := append([]byte(pngSignature), chunk("IHDR", head)...)
	out = append(out, bytes.Join(f.before, nil)...)
	if f.kind == pngPalette {
		out = append(out, f.palette()...)
	}
	out = append(out, chunk("IDAT", zipped(pixels))...)
	out = append(out, bytes.Join(f.behind, nil)...)
	return append(out, chunk("IEND", nil)...)
}

// row encodes a row of pixels with the filter type none.
func (f *pngFile) row(from, step, y int) []byte {
	out := []byte{0}
	bits, count := uint(0), 0
	put := func(v uint32) { // v has 16 bits
		if f.depth == 16 {
			out = append(out, byte(v>>8), byte(v))
			return
		}
		bits = bits<<f.depth | uint(v>>(16-f.depth))
		if count += f.depth; count == 8 {
			out = append(out, byte(bits))
			bits, count = 0, 0
		}
	}
	for x := from; x < f.picture.Rect.Dx(); x += step {
		c := f.picture.NRGBAAt(x, y)
		grey := uint32(color.Gray16Model.Convert(color.NRGBA{c.R, c.G, c.B, 255}).(color.Gray16).Y)
		switch f.kind {
		case pngGrey:
			put(grey)
		case pngGreyAlpha:
			put(grey)
			put(uint32(c.A) * 0x101)
		case pngPalette:
			put(uint32(paletteIndex(c, f.depth)) << (16 - f.depth))
		default:
			put(uint32(c.R) * 0x101)
			put(uint32(c.G) * 0x101)
			put(uint32(c.B) * 0x101)
			if f.kind == pngColorAlpha {
				put(uint32(c.A) * 0x101)
			}
		}
	}
	for count > 0 {
		put(0)
	}
	return out
}

// paletteIndex returns the palette entry for a color. A palette of 256 has three bits each for red and green, and two
// for blue. A palette of 16 has one bit for each color, and one for transparency.
func paletteIndex(c color.NRGBA, depth int) uint8 {
	if depth == 8 {
		return c.R&0xe0 | c.G>>3&0x1c | c.B>>6
	}
	return c.R>>7<<3 | c.G>>7<<2 | c.B>>7<<1 | c.A>>7
}

// palette returns the chunks of the palette and of its transparency.
func (f *pngFile) palette() []byte {
	var colors, alphas []byte
	for i := range 1 << f.depth {
		if f.depth == 8 {
			colors = append(colors, byte(i>>5*255/7), byte(i>>2&7*255/7), byte(i&3*85))
			continue
		}
		colors = append(colors, byte(i>>3&1*255), byte(i>>2&1*255), byte(i>>1&1*255))
		alphas = append(alphas, byte(i&1*255))
	}
	out := chunk("PLTE", colors)
	if alphas != nil {
		out = append(out, chunk("tRNS", alphas)...)
	}
	return out
}
