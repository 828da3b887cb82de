// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"encoding/binary"
	"image"
	"math"
)

// JPEGs that package image/jpeg does not write: other channels, samplings and orders (ITU-T T.81).

// jpegChannel is a channel of a JPEG: its number in the file, the number of values per unit across and down, and its
// value for a color.
type jpegChannel struct {
	id, across, down int
	value            func(r, g, b float64) float64
}

// jpegFile describes how an image is encoded.
type jpegFile struct {
	channels []jpegChannel
	// parts precede the frame.
	parts []byte
	// every is the restart interval in units; zero means no restart markers.
	every int
	// progressive stores the image in several scans.
	progressive bool
}

func luma(r, g, b float64) float64     { return 0.299*r + 0.587*g + 0.114*b }
func blueness(r, g, b float64) float64 { return 128 - 0.168736*r - 0.331264*g + 0.5*b }
func redness(r, g, b float64) float64  { return 128 + 0.5*r - 0.418688*g - 0.081312*b }

// ycc returns the usual channels, with the given sampling factors for brightness and for colors.
func ycc(across, down, colorAcross, colorDown int) []jpegChannel {
	return []jpegChannel{{1, across, down, luma}, {2, colorAcross, colorDown, blueness}, {3, colorAcross, colorDown, redness}}
}

const (
	jpegBlock = 8
	// jpegStep is the divisor of each coefficient. It is small, so little is lost.
	jpegStep = 3
	// jpegValues is the number of values in a block.
	jpegValues = jpegBlock * jpegBlock
)

// zigzag is the coefficient order (T.81, figure A.6).
var zigzag = [jpegValues]int{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// The code lengths and values of the standard Huffman tables for brightness (T.81, tables K.3 and K.5).
var (
	dcLengths = [16]byte{0, 1, 5, 1, 1, 1, 1, 1, 1}
	dcValues  = []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	acLengths = [16]byte{0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d}
	acValues  = []byte("\x01\x02\x03\x00\x04\x11\x05\x12!1A\x06\x13Qa\x07\"q\x142\x81\x91\xa1\x08#B\xb1\xc1\x15R\xd1\xf0$3br\x82\t\n\x16\x17\x18\x19\x1a%&'()*456789:CDEFGHIJSTUVWXYZcdefghijstuvwxyz" +
		"\x83\x84\x85\x86\x87\x88\x89\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa")
)

// jpegPart encodes a segment of a JPEG with its marker and its length.
func jpegPart(marker byte, data ...byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(data)+2)), data...)
}

// encode encodes an image.
func (f *jpegFile) encode(picture image.Image) []byte {
	w := &jpegWriter{jpegFile: f, picture: picture}
	for _, c := range f.channels {
		w.across, w.down = max(w.across, c.across), max(w.down, c.down)
	}
	size := picture.Bounds().Size()
	w.unitsAcross = (size.X + w.across*jpegBlock - 1) / (w.across * jpegBlock)
	w.unitsDown = (size.Y + w.down*jpegBlock - 1) / (w.down * jpegBlock)
	w.head(size)
	for _, c := range f.channels {
		w.blocks = append(w.blocks, w.transform(c))
	}
	if f.progressive {
		w.scan(0, 0, w.all()...)
		for i := range f.channels {
			w.scan(1, 5, i)
			w.scan(6, jpegValues-1, i)
		}
	} else {
		w.scan(0, jpegValues-1, w.all()...)
	}
	return append(w.out, 0xff, 0xd9)
}

// jpegWriter writes a JPEG.
type jpegWriter struct {
	*jpegFile
	picture image.Image
	// across and down are the numbers of blocks in a unit of the channel with the most values.
	across, down, unitsAcross, unitsDown int
	// blocks contains each channel's coefficients, in rows of blocks.
	blocks [][][jpegValues]int
	out    []byte
	bits   uint32
	count  int
}

func (w *jpegWriter) all() []int {
	all := make([]int, len(w.channels))
	for i := range all {
		all[i] = i
	}
	return all
}

func (w *jpegWriter) head(size image.Point) {
	w.out = append([]byte{0xff, 0xd8}, w.parts...)
	steps := make([]byte, 1+jpegValues)
	for i := range jpegValues {
		steps[1+i] = jpegStep
	}
	w.out = append(w.out, jpegPart(0xdb, steps...)...)
	frame := []byte{8, byte(size.Y >> 8), byte(size.Y), byte(size.X >> 8), byte(size.X), byte(len(w.channels))}
	for _, c := range w.channels {
		frame = append(frame, byte(c.id), byte(c.across<<4|c.down), 0)
	}
	marker := byte(0xc0)
	if w.progressive {
		marker = 0xc2
	}
	w.out = append(w.out, jpegPart(marker, frame...)...)
	w.out = append(w.out, jpegPart(0xc4, append(append([]byte{0x00}, dcLengths[:]...), dcValues...)...)...)
	w.out = append(w.out, jpegPart(0xc4, append(append([]byte{0x10}, acLengths[:]...), acValues...)...)...)
	if w.every > 0 {
		w.out = append(w.out, jpegPart(0xdd, byte(w.every>>8), byte(w.every))...)
	}
}

// plane returns the values of a channel, padded to whole blocks.
func (w *jpegWriter) plane(c jpegChannel) (values []float64, width, height int) {
	width, height = w.unitsAcross*c.across*jpegBlock, w.unitsDown*c.down*jpegBlock
	values = make([]float64, width*height)
	size := w.picture.Bounds().Size()
	stepX, stepY := float64(w.across)/float64(c.across), float64(w.down)/float64(c.down)
	for y := range height {
		for x := range width {
			px := min(int((float64(x)+0.5)*stepX), size.X-1)
			py := min(int((float64(y)+0.5)*stepY), size.Y-1)
			r, g, b, _ := w.picture.At(px, py).RGBA()
			values[y*width+x] = c.value(float64(r>>8), float64(g>>8), float64(b>>8)) - 128
		}
	}
	return values, width, height
}

// cosines is the table of the transform (T.81, section A.3.3).
var cosines = func() (table [jpegBlock][jpegBlock]float64) {
	for u := range jpegBlock {
		scale := 0.5
		if u == 0 {
			scale = math.Sqrt(0.125)
		}
		for x := range jpegBlock {
			table[u][x] = scale * math.Cos(float64(2*x+1)*float64(u)*math.Pi/16)
		}
	}
	return table
}()

func (w *jpegWriter) transform(c jpegChannel) [][jpegValues]int {
	values, width, height := w.plane(c)
	var blocks [][jpegValues]int
	for top := 0; top < height; top += jpegBlock {
		for left := 0; left < width; left += jpegBlock {
			var rows, whole [jpegBlock][jpegBlock]float64
			for y := range jpegBlock {
				for u := range jpegBlock {
					for x := range jpegBlock {
						rows[y][u] += cosines[u][x] * values[(top+y)*width+left+x]
					}
				}
			}
			var block [jpegValues]int
			for i, at := range zigzag {
				v, u := at/jpegBlock, at%jpegBlock
				for y := range jpegBlock {
					whole[v][u] += cosines[v][y] * rows[y][u]
				}
				block[i] = int(math.Round(whole[v][u] / jpegStep))
			}
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// scan writes the coefficients first to last of the given channels. A single channel is stored in rows of blocks,
// several channels in units (T.81, section A.2).
func (w *jpegWriter) scan(first, last int, channels ...int) {
	head := []byte{byte(len(channels))}
	for _, i := range channels {
		head = append(head, byte(w.channels[i].id), 0)
	}
	w.out = append(w.out, jpegPart(0xda, append(head, byte(first), byte(last), 0)...)...)
	w.bits, w.count = 0, 0
	before := make([]int, len(w.channels))
	put := func(channel, row, column int) {
		perRow := w.unitsAcross * w.channels[channel].across
		w.block(&w.blocks[channel][row*perRow+column], first, last, &before[channel])
	}
	units := 0
	next := func() {
		if w.every > 0 && units > 0 && units%w.every == 0 {
			w.flush()
			w.out = append(w.out, 0xff, byte(0xd0+(units/w.every-1)%8))
			clear(before)
		}
		units++
	}
	if len(channels) == 1 {
		c := w.channels[channels[0]]
		size := w.picture.Bounds().Size()
		blocksAcross := (size.X*c.across + w.across*jpegBlock - 1) / (w.across * jpegBlock)
		blocksDown := (size.Y*c.down + w.down*jpegBlock - 1) / (w.down * jpegBlock)
		for row := range blocksDown {
			for column := range blocksAcross {
				next()
				put(channels[0], row, column)
			}
		}
	} else {
		for unit := range w.unitsAcross * w.unitsDown {
			next()
			for _, i := range channels {
				c := w.channels[i]
				for n := range c.across * c.down {
					put(i, unit/w.unitsAcross*c.down+n/c.across, unit%w.unitsAcross*c.across+n%c.across)
				}
			}
		}
	}
	w.flush()
}

// block writes the coefficients of a block (T.81, section F.1.2).
func (w *jpegWriter) block(b *[jpegValues]int, first, last int, before *int) {
	if first == 0 {
		difference := b[0] - *before
		*before = b[0]
		n := magnitude(difference)
		w.code(dcLengths[:], dcValues, byte(n))
		w.amplitude(difference, n)
		first = 1
	}
	zeros := 0
	for i := first; i <= last; i++ {
		if b[i] == 0 {
			zeros++
			continue
		}
		for ; zeros > 15; zeros -= 16 {
			w.code(acLengths[:], acValues, 0xf0)
		}
		n := magnitude(b[i])
		w.code(acLengths[:], acValues, byte(zeros<<4|n))
		w.amplitude(b[i], n)
		zeros = 0
	}
	if zeros > 0 && first <= last {
		w.code(acLengths[:], acValues, 0)
	}
}

func magnitude(v int) (n int) {
	for v = max(v, -v); v > 0; v >>= 1 {
		n++
	}
	return n
}

func (w *jpegWriter) amplitude(v, n int) {
	if v < 0 {
		v += 1<<n - 1
	}
	w.write(uint32(v), n)
}

// code writes the code of a value (T.81, annex C).
func (w *jpegWriter) code(lengths, values []byte, value byte) {
	code, at := uint32(0), 0
	for i, count := range lengths {
		for range count {
			if values[at] == value {
				w.write(code, i+1)
				return
			}
			code++
			at++
		}
		code <<= 1
	}
}

func (w *jpegWriter) write(bits uint32, n int) {
	for i := n - 1; i >= 0; i-- {
		w.bits = w.bits<<1 | bits>>i&1
		w.count++
		if w.count == 8 {
			w.out = append(w.out, byte(w.bits))
			if byte(w.bits) == 0xff {
				w.out = append(w.out, 0)
			}
			w.bits, w.count = 0, 0
		}
	}
}

// flush pads the last byte with ones.
func (w *jpegWriter) flush() {
	for w.count > 0 {
		w.write(1, 1)
	}
}
