// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math/rand/v2"
)

const (
	// picturesPerTeam is the number of different pictures that a team has.
	picturesPerTeam = 4
	// pictureSide is the width and height of a picture, in pixels, as is usual for posts.
	pictureSide = 1080
	// mosaic is the side length of a square of one color, in pixels. With this size and quality, a picture is about
	// 200 KiB.
	mosaic  = 12
	quality = 60
)

// drawPicture draws a different JPEG of about 200 KiB for each number.
func drawPicture(number uint64) ([]byte, error) {
	source := rand.New(rand.NewPCG(number, 1))
	canvas := image.NewRGBA(image.Rect(0, 0, pictureSide, pictureSide))
	for y := 0; y < pictureSide; y += mosaic {
		for x := 0; x < pictureSide; x += mosaic {
			c := color.RGBA{R: uint8(source.Uint32()), G: uint8(source.Uint32()), B: uint8(source.Uint32()), A: 0xff}
			draw.Draw(canvas, image.Rect(x, y, x+mosaic, y+mosaic), image.NewUniform(c), image.Point{}, draw.Src)
		}
	}
	var out bytes.Buffer
	err := jpeg.Encode(&out, canvas, &jpeg.Options{Quality: quality})
	return out.Bytes(), err
}
