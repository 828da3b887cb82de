// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"image"
	_ "image/gif"  // registers its decoder, for received GIFs that platforms reject
	_ "image/jpeg" // registers its decoder
	_ "image/png"  // registers its decoder
	"io"
	"os"
	"strings"
	"time"

	"github.com/abema/go-mp4"
	"github.com/gabriel-vasile/mimetype"
	_ "golang.org/x/image/webp" // registers its decoder
)

// unknownType is the type of a file with unrecognized content.
const unknownType = "application/octet-stream"

// examine detects a file's type and dimensions. It does not use the same libraries as Herald, because shared ones would
// make the simulator accept the same invalid files. Undetected fields are zero.
func examine(file *os.File, blob *Blob) {
	blob.MIMEType = unknownType
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return
	}
	if found, err := mimetype.DetectReader(file); err == nil {
		blob.MIMEType, _, _ = strings.Cut(found.String(), ";")
	}
	if blob.MIMEType == "image/apng" {
		// Platforms treat an animated PNG as a PNG and show its first frame.
		blob.MIMEType = "image/png"
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return
	}
	if strings.HasPrefix(blob.MIMEType, "image/") {
		if config, _, err := image.DecodeConfig(file); err == nil {
			blob.Width, blob.Height = config.Width, config.Height
		}
		return
	}
	if !examineByFFprobe(file.Name(), blob) {
		examineVideo(file, blob)
	}
	if blob.Width > 0 && blob.MIMEType != quickTime {
		// Platforms ignore a video's brand.
		blob.MIMEType = "video/mp4"
	}
}

// quickTime is the type of a video with the QuickTime brand.
const quickTime = "video/quicktime"

func examineVideo(file io.ReadSeeker, blob *Blob) {
	info, err := mp4.Probe(file)
	if err != nil {
		return
	}
	blob.Duration = playing(info)
	headers, err := mp4.ExtractBoxWithPayload(file, nil, mp4.BoxPath{mp4.BoxTypeMoov(), mp4.BoxTypeTrak(), mp4.BoxTypeTkhd()})
	if err != nil {
		return
	}
	for _, header := range headers {
		if track, ok := header.Payload.(*mp4.Tkhd); ok && track.GetWidthInt() > 0 {
			blob.Width, blob.Height = int(track.GetWidthInt()), int(track.GetHeightInt())
			if m := track.Matrix; m[0] == 0 && m[4] == 0 && m[1] != 0 {
				blob.Width, blob.Height = blob.Height, blob.Width
			}
			return
		}
	}
}

// playing returns the duration of a video, from its header or its fragments.
func playing(info *mp4.ProbeInfo) time.Duration {
	last := lasting(info.Duration, info.Timescale)
	parts := map[uint32]uint64{}
	for _, s := range info.Segments {
		parts[s.TrackID] += uint64(s.Duration)
	}
	for _, t := range info.Tracks {
		last = max(last, lasting(parts[t.TrackID], t.Timescale))
	}
	return last
}

func lasting(units uint64, timescale uint32) time.Duration {
	if timescale == 0 {
		return 0
	}
	return time.Duration(float64(units) / float64(timescale) * float64(time.Second))
}
