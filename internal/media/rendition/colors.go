// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"image"
	"image/color"
	"io"
	"math"

	"golang.org/x/image/webp"
)

// decodeWebP decodes a WebP to the colors that its encoder was given. The lossy format stores brightness from 16 to
// 235 and color from 16 to 240 (RFC 6386, section 9.2, by ITU-R BT.601). The library returns these values unchanged,
// while the types in package image use all 256 values: black would become 16, and white 235.
func decodeWebP(r io.Reader) (image.Image, error) {
	picture, err := webp.Decode(r)
	switch p := picture.(type) {
	case *image.YCbCr:
		widen(p)
	case *image.NYCbCrA:
		widen(&p.YCbCr)
	}
	return picture, err
}

// The ranges of values in a lossy WebP, and the middle of a color's range.
const (
	minLuma, maxLuma     = 16, 235
	minChroma, maxChroma = 16, 240
	noChroma             = 128
)

// widen stretches a picture's values from the limited to the full range, in place.
func widen(p *image.YCbCr) {
	var luma, chroma [256]uint8
	for i := range 256 {
		luma[i] = clamped(float64(i-minLuma) * math.MaxUint8 / (maxLuma - minLuma))
		chroma[i] = clamped(noChroma + float64(i-noChroma)*math.MaxUint8/(maxChroma-minChroma))
	}
	replace(p.Y, &luma)
	replace(p.Cb, &chroma)
	replace(p.Cr, &chroma)
}

func replace(values []uint8, by *[256]uint8) {
	for i, v := range values {
		values[i] = by[v]
	}
}

func clamped(value float64) uint8 { return uint8(math.Round(min(max(value, 0), math.MaxUint8))) }

// brighten converts a picture from a PNG's gamma to sRGB, in place. The cases are the types that package png returns.
func brighten(picture image.Image, gamma float64) {
	curve := func(v, most int) float64 {
		return encoded(math.Pow(float64(v)/float64(most), 1/gamma)) * float64(most)
	}
	var narrow [256]uint8
	for v := range narrow {
		narrow[v] = clamped(curve(v, math.MaxUint8))
	}
	switch p := picture.(type) {
	case *image.Gray:
		replace(p.Pix, &narrow)
	case *image.RGBA: // opaque
		brightenEach(p.Pix, &narrow)
	case *image.NRGBA:
		brightenEach(p.Pix, &narrow)
	case *image.Paletted:
		for i, entry := range p.Palette {
			c, _ := color.NRGBAModel.Convert(entry).(color.NRGBA)
			p.Palette[i] = color.NRGBA{R: narrow[c.R], G: narrow[c.G], B: narrow[c.B], A: c.A}
		}
	case *image.Gray16:
		brightenWide(p.Pix, curve, 1)
	case *image.RGBA64: // opaque
		brightenWide(p.Pix, curve, 4)
	case *image.NRGBA64:
		brightenWide(p.Pix, curve, 4)
	}
}

// encoded returns the sRGB value for an amount of light, both from 0 to 1 (IEC 61966-2-1, section 5.2).
func encoded(light float64) float64 {
	const linearTo, slope, scale, offset, exponent = 0.0031308, 12.92, 1.055, 0.055, 1 / 2.4
	if light <= linearTo {
		return slope * light
	}
	return scale*math.Pow(light, exponent) - offset
}

// brightenEach replaces red, green and blue in four-byte pixels.
func brightenEach(pixels []uint8, by *[256]uint8) {
	for at := 0; at+3 < len(pixels); at += 4 {
		replace(pixels[at:at+3], by)
	}
}

// brightenWide replaces 16-bit values. If there are four channels, the last one is alpha and is not changed.
func brightenWide(pixels []uint8, curve func(v, most int) float64, channels int) {
	table := make([]uint16, math.MaxUint16+1)
	for v := range table {
		table[v] = uint16(math.Round(curve(v, math.MaxUint16)))
	}
	for i := range len(pixels) / 2 {
		if channels == 4 && i%4 == 3 {
			continue
		}
		v := table[int(pixels[2*i])<<8|int(pixels[2*i+1])]
		pixels[2*i], pixels[2*i+1] = uint8(v>>8), uint8(v) //nolint:gosec // its two bytes
	}
}
