// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"image"
	_ "image/gif"  // what may be received, and refused
	_ "image/jpeg" // registers its decoder
	_ "image/png"  // registers its decoder
	"io"
	"strings"
	"time"

	"github.com/abema/go-mp4"
	"github.com/gabriel-vasile/mimetype"
	_ "golang.org/x/image/webp" // registers its decoder
)

// unknownType is what a file is called whose content says nothing.
const unknownType = "application/octet-stream"

// examine finds out what a file is; what cannot be told stays zero.
func examine(file io.ReadSeeker, blob *Blob) {
	blob.MIMEType = unknownType
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return
	}
	if found, err := mimetype.DetectReader(file); err == nil {
		blob.MIMEType, _, _ = strings.Cut(found.String(), ";")
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return
	}
	switch {
	case strings.HasPrefix(blob.MIMEType, "image/"):
		if config, _, err := image.DecodeConfig(file); err == nil {
			blob.Width, blob.Height = config.Width, config.Height
		}
	case strings.HasPrefix(blob.MIMEType, "video/"):
		examineVideo(file, blob)
	}
}

func examineVideo(file io.ReadSeeker, blob *Blob) {
	info, err := mp4.Probe(file)
	if err != nil {
		return
	}
	if info.Timescale > 0 {
		blob.Duration = time.Duration(float64(info.Duration) / float64(info.Timescale) * float64(time.Second))
	}
	headers, err := mp4.ExtractBoxWithPayload(file, nil, mp4.BoxPath{mp4.BoxTypeMoov(), mp4.BoxTypeTrak(), mp4.BoxTypeTkhd()})
	if err != nil {
		return
	}
	for _, header := range headers {
		if track, ok := header.Payload.(*mp4.Tkhd); ok && track.GetWidthInt() > 0 {
			blob.Width, blob.Height = int(track.GetWidthInt()), int(track.GetHeightInt())
			return
		}
	}
}
