// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"fmt"
	"time"

	"github.com/herald-social/herald/internal/media/store"
)

// TranscodeSource is a video in the store.
type TranscodeSource struct {
	Source
	// Duration is how long the video plays.
	Duration time.Duration
}

// Profile describes the result of a conversion.
type Profile struct {
	// Width and Height are the size of the picture in pixels. Both are even.
	Width, Height int
	// FrameRate is the number of frames per second. Zero keeps the frame rate of the source.
	FrameRate float64
	// BitRate limits the picture's bits per second.
	BitRate int64
}

// transcodeVersion is part of every key. Change it whenever the same source and target give a different result.
const transcodeVersion = "1"

// TranscodeKey returns the store's key for the conversion of a source for a target.
func TranscodeKey(source Source, t Profile) string {
	return store.Derived(source.Key, store.Digest(fmt.Sprintf("video %s\n%q\n%d %d %g %d", transcodeVersion, source.ETag, t.Width, t.Height, t.FrameRate, t.BitRate)))
}
