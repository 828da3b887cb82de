// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcode converts videos that Herald accepts and a platform does not: to H.264 and AAC, to fewer pixels, to
// another frame rate and to fewer bits, with the index first. ffmpeg does it, in a separate process. A conversion is
// made once and kept in the store next to the video.
package transcode

import (
	"fmt"
	"time"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
)

// Source is a video in the store.
type Source struct {
	rendition.Source
	// Duration is its playing time.
	Duration time.Duration
}

// Profile are the properties of a conversion.
type Profile struct {
	// Width and Height are the size of the picture, in pixels, both even.
	Width, Height int
	// FrameRate is the number of frames per second; zero keeps the source's.
	FrameRate float64
	// BitRate limits the bits of the picture per second.
	BitRate int64
}

// formatVersion is part of every key. Change it when the same source and target give another result than before.
const formatVersion = "1"

// Key returns the key of the conversion of a source for a target.
func Key(source rendition.Source, t Profile) string {
	return store.Derived(source.Key, store.Digest(fmt.Sprintf("video %s\n%q\n%d %d %g %d", formatVersion, source.ETag, t.Width, t.Height, t.FrameRate, t.BitRate)))
}
