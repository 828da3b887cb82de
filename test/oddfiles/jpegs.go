// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
)

// plainJPEG is the chart as Go's encoder writes it.
func plainJPEG() []byte { return goJPEG(chart()) }

func goJPEG(picture image.Image) []byte {
	if opaque, ok := picture.(*image.NRGBA); ok {
		// Go encodes this type faster, and for an opaque picture it is equivalent.
		picture = &image.RGBA{Pix: opaque.Pix, Stride: opaque.Stride, Rect: opaque.Rect}
	}
	var out bytes.Buffer
	// Writing to a buffer never fails.
	_ = jpeg.Encode(&out, picture, &jpeg.Options{Quality: 92})
	return out.Bytes()
}

// storedJPEG makes the chart with a different encoding of the channels.
func storedJPEG(f jpegFile) Maker { return fixed(func() []byte { return f.encode(chart()) }) }

// marked inserts segments after the JPEG's start marker.
func marked(parts ...[]byte) func([]byte) []byte {
	return func(data []byte) []byte {
		return bytes.Join([][]byte{data[:2], bytes.Join(parts, nil), data[2:]}, nil)
	}
}

// app1 returns a segment with EXIF; xmpPart returns one with XMP.
func app1(exif []byte) []byte { return jpegPart(0xe1, append([]byte("Exif\x00\x00"), exif...)...) }

func xmpPart(packet []byte) []byte {
	return jpegPart(0xe1, append([]byte("http://ns.adobe.com/xap/1.0/\x00"), packet...)...)
}

// iccParts splits a profile into count segments.
func iccParts(profile []byte, count int) [][]byte {
	var parts [][]byte
	length := (len(profile) + count - 1) / count
	for i := range count {
		part := profile[i*length : min((i+1)*length, len(profile))]
		parts = append(parts, jpegPart(0xe2, append([]byte("ICC_PROFILE\x00"+string([]byte{byte(i + 1), byte(count)})), part...)...))
	}
	return parts
}

// adobe returns the segment with the color transform of three or four channels.
func adobe(transform byte) []byte {
	return jpegPart(0xee, append([]byte("Adobe\x00\x64\x00\x00\x00\x00"), transform)...)
}

// frameChanged changes a JPEG's frame: its marker, and the bits per channel.
func frameChanged(marker, bits byte) func([]byte) []byte {
	return func(data []byte) []byte {
		at := bytes.Index(data, []byte{0xff, 0xc0})
		data[at+1], data[at+4] = marker, bits
		return data
	}
}

// inks returns a CMYK image's channels. Both variants are inverted, as stored by Adobe.
func inks(transformed bool) []jpegChannel {
	black := func(r, g, b float64) float64 { return max(r, g, b) }
	rest := func(pick func(r, g, b float64) float64) func(r, g, b float64) float64 {
		return func(r, g, b float64) float64 {
			if k := black(r, g, b); k > 0 {
				return pick(r, g, b) * 255 / k
			}
			return 255
		}
	}
	cyan := rest(func(r, _, _ float64) float64 { return r })
	magenta := rest(func(_, g, _ float64) float64 { return g })
	yellow := rest(func(_, _, b float64) float64 { return b })
	if !transformed {
		return []jpegChannel{{'C', 1, 1, cyan}, {'M', 1, 1, magenta}, {'Y', 1, 1, yellow}, {'K', 1, 1, black}}
	}
	// The transform applies to the inks without inversion, but black is inverted.
	of := func(f func(r, g, b float64) float64) func(r, g, b float64) float64 {
		return func(r, g, b float64) float64 {
			return f(255-cyan(r, g, b), 255-magenta(r, g, b), 255-yellow(r, g, b))
		}
	}
	return []jpegChannel{{1, 1, 1, of(luma)}, {2, 1, 1, of(blueness)}, {3, 1, 1, of(redness)}, {4, 1, 1, black}}
}

// turned returns a row for each JPEG orientation.
func turned() []Row {
	reasons := map[int]string{
		1: "a phone held upright", 2: "mirroring front cameras", 3: "a phone held upside down", 4: "slide scanners",
		5: "exif-orientation-examples", 6: "an iPhone held upright: the usual portrait", 7: "exif-orientation-examples", 8: "a phone turned to the left",
	}
	makers := map[binary.ByteOrder]string{binary.LittleEndian: "intel", binary.BigEndian: "motorola"}
	var rows []Row
	for turn := 1; turn <= 8; turn++ {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			row := Row{
				Name: fmt.Sprintf("turned-%d-%s.jpg", turn, makers[order]), Reason: reasons[turn], Turn: turn, Want: rendered,
				Make: edit(fixed(plainJPEG), marked(app1(exif(order, turn, false, nil)))), Short: turn == 6,
			}
			if turn == 1 {
				row.Want = asSent
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// jpegs returns JPEGs with rare encodings.
func jpegs() []Row {
	rgb := []jpegChannel{
		{'R', 1, 1, func(r, _, _ float64) float64 { return r }},
		{'G', 1, 1, func(_, g, _ float64) float64 { return g }},
		{'B', 1, 1, func(_, _, b float64) float64 { return b }},
	}
	strange := unusable("Herald cannot read")
	rows := []Row{
		{Name: "plain.jpg", Reason: "nothing unusual: the baseline", Make: fixed(plainJPEG), Want: asSent, Short: true},
		{Name: "plain.jfif", Reason: "Windows and Chrome use this extension for JPEGs", Make: fixed(plainJPEG), Want: unusable("rename the file")},
		{Name: "progressive.jpg", Reason: "websites and mozjpeg", Make: storedJPEG(jpegFile{channels: ycc(2, 2, 1, 1), progressive: true}), Want: asSent},
		{
			Name: "progressive-turned.jpg", Reason: "the same, from a phone", Turn: 6, Want: rendered,
			Make: edit(storedJPEG(jpegFile{channels: ycc(2, 2, 1, 1), progressive: true}), marked(app1(exif(binary.BigEndian, 6, false, nil)))), Short: true,
		},
		{Name: "restarts.jpg", Reason: "cameras that encode rows in parallel", Make: storedJPEG(jpegFile{channels: ycc(2, 2, 1, 1), every: 13}), Want: asSent},
		{
			Name: "restarts-wide.jpg", Reason: "the same, converted for Instagram", Want: asSent.but(rendition, Instagram),
			Make: fixed(func() []byte { return (&jpegFile{channels: ycc(2, 1, 1, 1), every: 7}).encode(charted(600, 200)) }),
		},
		{Name: "grey.jpg", Reason: "scanners, and black-and-white modes", Make: fixed(func() []byte { return goJPEG(greyed(chart())) }), Want: asSent},
		{Name: "grey-wide.jpg", Reason: "the same, converted for Instagram", Make: fixed(func() []byte { return goJPEG(greyed(charted(600, 200))) }), Want: asSent.but(rendition, Instagram)},
		{Name: "rgb.jpg", Reason: "Photoshop at full quality, and ImageMagick with -colorspace RGB", Make: storedJPEG(jpegFile{channels: rgb, parts: adobe(0)}), Want: asSent},
		{Name: "sampling-444.jpg", Reason: "Photoshop, and screenshots", Make: storedJPEG(jpegFile{channels: ycc(1, 1, 1, 1)}), Want: asSent},
		{Name: "sampling-422.jpg", Reason: "Canon and Nikon cameras", Make: storedJPEG(jpegFile{channels: ycc(2, 1, 1, 1)}), Want: asSent},
		{Name: "sampling-411.jpg", Reason: "early digital cameras", Make: storedJPEG(jpegFile{channels: ycc(4, 1, 1, 1)}), Want: asSent, Short: true},
		{Name: "sampling-440.jpg", Reason: "4:2:2, losslessly rotated by jpegtran", Make: storedJPEG(jpegFile{channels: ycc(1, 2, 1, 1)}), Want: asSent},
		{
			Name: "sampling-440-turned.jpg", Reason: "the same, with an orientation tag", Turn: 8, Want: rendered,
			Make: edit(storedJPEG(jpegFile{channels: ycc(1, 2, 1, 1)}), marked(app1(exif(binary.LittleEndian, 8, false, nil)))),
		},
		{Name: "sampling-3x1.jpg", Reason: "cjpeg -sample 3x1", Make: storedJPEG(jpegFile{channels: ycc(3, 1, 1, 1)}), Want: strange},
		{Name: "sampling-1x4.jpg", Reason: "cjpeg -sample 1x4", Make: storedJPEG(jpegFile{channels: ycc(1, 4, 1, 1)}), Want: strange},
		{
			Name: "sampling-2x2-1x2.jpg", Reason: "cjpeg -sample 2x2,1x2", Want: strange,
			Make: storedJPEG(jpegFile{channels: []jpegChannel{{1, 2, 2, luma}, {2, 1, 2, blueness}, {3, 1, 1, redness}}}), Short: true,
		},
		{Name: "twelve-bits.jpg", Reason: "medical devices", Make: edit(fixed(plainJPEG), frameChanged(0xc1, 12)), Want: strange, Short: true},
		{Name: "arithmetic.jpg", Reason: "jpegtran -arithmetic", Make: edit(fixed(plainJPEG), frameChanged(0xc9, 8)), Want: strange},
		{Name: "lossless.jpg", Reason: "DNG converters", Make: edit(fixed(plainJPEG), frameChanged(0xc3, 8)), Want: strange},
		{Name: "cmyk.jpg", Reason: "print shops, with Photoshop", Make: storedJPEG(jpegFile{channels: inks(false), parts: adobe(0)}), Want: asSent},
		{
			Name: "cmyk-turned.jpg", Reason: "the same, with an orientation tag", Turn: 3, Want: rendered, Shows: fixed(plainJPEG), Short: true,
			Make: edit(storedJPEG(jpegFile{channels: inks(false), parts: adobe(0)}), marked(app1(exif(binary.BigEndian, 3, false, nil)))),
		},
		{
			Name: "ycck-turned.jpg", Reason: "InDesign", Turn: 3, Want: rendered, Shows: fixed(plainJPEG),
			Make: edit(storedJPEG(jpegFile{channels: inks(true), parts: adobe(2)}), marked(app1(exif(binary.BigEndian, 3, false, nil)))),
		},
	}
	return append(rows, turned()...)
}

func greyed(picture *image.NRGBA) image.Image {
	out := image.NewGray(picture.Rect)
	for y := range picture.Rect.Dy() {
		for x := range picture.Rect.Dx() {
			out.Set(x, y, color.GrayModel.Convert(picture.At(x, y)))
		}
	}
	return out
}
