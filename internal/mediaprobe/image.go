// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mediaprobe

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"math"

	"github.com/bep/imagemeta"
	"golang.org/x/image/webp"

	"github.com/herald-social/herald/api/v1alpha1"
)

// imageFormat is how one kind of image is read.
type imageFormat struct {
	config func(io.Reader) (image.Config, error)
	// meta is the same kind in the words of the library that reads metadata.
	meta imagemeta.ImageFormat
	// whole tells whether the end of the file is there.
	whole func(file *blocks, size int64) bool
}

var imageFormats = map[v1alpha1.MimeType]imageFormat{
	v1alpha1.MimeJPEG: {jpeg.DecodeConfig, imagemeta.JPEG, endsWith("\xff\xd9")},
	v1alpha1.MimePNG:  {png.DecodeConfig, imagemeta.PNG, endsWith("IEND\xae\x42\x60\x82")},
	v1alpha1.MimeWebP: {webp.DecodeConfig, imagemeta.WebP, riffIsWhole},
}

// picture examines an image without decoding it: its header, its orientation
// and its end.
func picture(file *blocks, size int64, mimeType v1alpha1.MimeType) (Facts, error) {
	format := imageFormats[mimeType]
	config, err := format.config(io.NewSectionReader(file, 0, size))
	if err != nil {
		return Facts{}, damaged("The image is damaged: its header cannot be read (%v). Export it again.", err)
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > math.MaxInt32 || config.Height > math.MaxInt32 {
		return Facts{}, damaged("The image is damaged: it says it is %d pixels wide and %d high. Export it again.", config.Width, config.Height)
	}
	if !format.whole(file, size) {
		return Facts{}, damaged("The image is cut off: its end is missing. Upload the whole file.")
	}
	facts := Facts{Width: int32(config.Width), Height: int32(config.Height)}
	if turned(file, size, format.meta) {
		facts.Width, facts.Height = facts.Height, facts.Width
	}
	return facts, nil
}

// endsWith looks for the mark that ends a file. Some programs append data of
// their own, so it may stand anywhere in the last block.
func endsWith(mark string) func(*blocks, int64) bool {
	return func(file *blocks, size int64) bool {
		tail := make([]byte, min(size, blockBytes))
		if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
			return false
		}
		return bytes.Contains(tail, []byte(mark))
	}
}

// riffHeader is how long the header of a RIFF file is, which says how many
// bytes follow the first eight.
const riffHeader = 8

func riffIsWhole(file *blocks, size int64) bool {
	var header [riffHeader]byte
	if _, err := file.ReadAt(header[:], 0); err != nil {
		return false
	}
	return int64(binary.LittleEndian.Uint32(header[4:]))+riffHeader <= size
}

// The values of the EXIF tag Orientation that stand for a turn by 90 or 270
// degrees, mirrored or not (EXIF 2.32, section 4.6.4).
const firstTurned, lastTurned = 5, 8

// turned tells whether an image is to be shown turned to its side. Metadata
// that cannot be read turns nothing: viewers pass over it too.
func turned(file *blocks, size int64, format imagemeta.ImageFormat) bool {
	result := false
	_, _ = imagemeta.Decode(imagemeta.Options{
		R:           io.NewSectionReader(file, 0, size),
		ImageFormat: format,
		Sources:     imagemeta.EXIF,
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool {
			return tag.Tag == "Orientation" && tag.Namespace == "IFD0"
		},
		HandleTag: func(tag imagemeta.TagInfo) error {
			if value, ok := tag.Value.(uint16); ok {
				result = value >= firstTurned && value <= lastTurned
			}
			return imagemeta.ErrStopWalking
		},
	})
	return result
}
