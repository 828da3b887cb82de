// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"crypto/sha256"
	"image"
	"image/color"
	"math"
)

// chartWidth and chartHeight have an aspect ratio that Instagram accepts in portrait and in landscape.
const chartWidth, chartHeight = 400, 320

// chart returns the test image: red increases to the right and green downwards, and a white and a black block make each
// orientation look different.
func chart() *image.NRGBA { return charted(chartWidth, chartHeight) }

func charted(width, height int) *image.NRGBA {
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.NRGBA{uint8(x * math.MaxUint8 / width), uint8(y * math.MaxUint8 / height), 128, math.MaxUint8}
			switch {
			case x < width/4 && y < height/4:
				c = color.NRGBA{255, 255, 255, 255}
			case x >= width/2 && x < width*5/8 && y < height/4:
				c = color.NRGBA{0, 0, 0, 255}
			}
			picture.SetNRGBA(x, y, c)
		}
	}
	return picture
}

// glass returns the chart, with transparency that decreases to the right.
func glass() *image.NRGBA {
	picture := chart()
	for y := range chartHeight {
		for x := range chartWidth {
			picture.Pix[picture.PixOffset(x, y)+3] = uint8(x * math.MaxUint8 / (chartWidth - 1))
		}
	}
	return picture
}

// mapped returns an image with other colors, which value computes from each channel's value between 0 and 1.
func mapped(picture *image.NRGBA, value func(float64) float64) *image.NRGBA {
	out := image.NewNRGBA(picture.Rect)
	var table [256]uint8
	for i := range table {
		table[i] = uint8(math.Round(math.MaxUint8 * value(float64(i)/math.MaxUint8)))
	}
	for i, v := range picture.Pix {
		if out.Pix[i] = table[v]; i%4 == 3 {
			out.Pix[i] = v
		}
	}
	return out
}

// light converts an sRGB value to linear light (IEC 61966-2-1).
func light(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

func sum(data []byte) [sha256.Size]byte { return sha256.Sum256(data) }
