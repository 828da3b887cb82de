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

// transcodeVersion is part of every key. Change it when the same source and target give another result than before.
const transcodeVersion = "1"

// TranscodeKey returns the key of the conversion of a source for a target.
func TranscodeKey(source Source, t Profile) string {
	return store.Derived(source.Key, store.Digest(fmt.Sprintf("video %s\n%q\n%d %d %g %d", transcodeVersion, source.ETag, t.Width, t.Height, t.FrameRate, t.BitRate)))
}
