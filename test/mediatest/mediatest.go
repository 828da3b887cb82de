// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mediatest makes media files that every platform takes.
package mediatest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
)

// side is the width and the height of a picture, in pixels.
const side = 720

// Picture is a JPEG of one colour.
func Picture(of color.Color) ([]byte, error) {
	picture := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{of})
	var out bytes.Buffer
	err := jpeg.Encode(&out, picture, nil)
	return out.Bytes(), err
}

// The size and the length that Film gives to its film: upright, and long enough for every platform.
const (
	filmWidth, filmHeight = 720, 1280
	filmSeconds           = 10
)

// Film is a small MP4. repository is the path to the root of the repository, whose
// smallest film it is; what its headers say of the size and the length is changed to
// what every platform takes.
func Film(repository string) ([]byte, error) {
	film, err := os.ReadFile(filepath.Join(repository, "internal", "media", "probe", "testdata", "faststart.mp4"))
	if err != nil {
		return nil, err
	}
	header, track := bytes.Index(film, []byte("mvhd")), bytes.Index(film, []byte("tkhd"))
	if header < 0 || track < 0 {
		return nil, errors.New("the film has no headers of the film and its track")
	}
	// Behind the name: version and flags, two times, the units of a second, the length in them.
	units := binary.BigEndian.Uint32(film[header+16:])
	binary.BigEndian.PutUint32(film[header+20:], filmSeconds*units)
	end := track - 4 + int(binary.BigEndian.Uint32(film[track-4:]))
	binary.BigEndian.PutUint32(film[end-8:], filmWidth<<16)
	binary.BigEndian.PutUint32(film[end-4:], filmHeight<<16)
	return film, nil
}
