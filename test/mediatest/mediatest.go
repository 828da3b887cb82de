// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mediatest creates media files that every platform accepts.
package mediatest

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
)

// side is an image's width and height, in pixels.
const side = 720

// Picture returns a single-color JPEG.
func Picture(of color.Color) ([]byte, error) {
	picture := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{of})
	var out bytes.Buffer
	err := jpeg.Encode(&out, picture, nil)
	return out.Bytes(), err
}

// Film returns a small MP4 video: ten seconds of 720 × 1280 pixels at 30 frames per second, H.264 and AAC. repository
// is the path to the root of the repository.
func Film(repository string) ([]byte, error) {
	return os.ReadFile(filepath.Join(repository, "internal", "media", "probe", "testdata", "tenseconds.mp4"))
}
