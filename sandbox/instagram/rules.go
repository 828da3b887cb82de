// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/graph"
)

// The limits of captions.
const (
	maxCaption  = 2200
	maxHashtags = 30
	maxMentions = 20
)

const jpegType = "image/jpeg"

// File limits. An image's width has no limit: Instagram scales it to between 320 and 1440 pixels.
const (
	maxImage      = 8 << 20
	maxVideo      = 300 << 20
	minPlay       = 3 * time.Second
	maxPlay       = 15 * time.Minute
	maxVideoWidth = 1920
	maxBitRate    = 25_000_000 // per second
	// minFrameRate and maxFrameRate are 23 and 60 frames per second plus a tolerance for the video's clock.
	minFrameRate, maxFrameRate = 22, 63
)

var (
	hashtag = regexp.MustCompile(`(?:^|[^\pL\pN_&])#[\pL\pN_]`)
	mention = regexp.MustCompile(`(?:^|[^\pL\pN_.])@[A-Za-z0-9_.]`)
)

// checkCaption enforces the limits of a caption.
func checkCaption(text string) *graph.Error {
	switch {
	case utf8.RuneCountInString(text) > maxCaption:
		return badCaption(fmt.Sprintf("A caption may have %d characters.", maxCaption))
	case len(hashtag.FindAllStringIndex(text, -1)) > maxHashtags:
		return badCaption(fmt.Sprintf("A caption may have %d hashtags.", maxHashtags))
	case len(mention.FindAllStringIndex(text, -1)) > maxMentions:
		return badCaption(fmt.Sprintf("A caption may mention %d accounts.", maxMentions))
	}
	return nil
}

// validateImage returns an error for an invalid picture.
func validateImage(b blobs.Blob) *graph.Error {
	switch {
	case b.MIMEType != jpegType, b.Width == 0 || b.Height == 0:
		return imageUnsupported()
	case b.Width*5 < b.Height*4, b.Width*100 > b.Height*191:
		return badAspect(b.Width, b.Height)
	}
	return nil
}

// validateVideo returns a video's processing failure for its kind; "" for success.
func validateVideo(b blobs.Blob, shown detail) string {
	play, offset := b.Duration.Seconds(), time.Duration(shown.ThumbOffset)*time.Millisecond
	switch {
	case !slices.Contains([]string{"video/mp4", "video/quicktime"}, b.MIMEType),
		b.Duration < minPlay, b.Duration > maxPlay,
		b.Width == 0 || b.Height == 0, b.Width > maxVideoWidth,
		b.Width*100 < b.Height, b.Width > b.Height*10,
		float64(b.Bytes)*8 > maxBitRate*play,
		b.VideoCodec != "" && !slices.Contains([]string{"h264", "hevc"}, b.VideoCodec),
		b.AudioCodec != "" && b.AudioCodec != "aac",
		b.FrameRate > 0 && (b.FrameRate < minFrameRate || b.FrameRate > maxFrameRate):
		return videoUnsupported
	case offset >= b.Duration:
		return offsetOutside
	}
	return ""
}

func ratio(width, height int) string { return fmt.Sprintf("%.2f", float64(width)/float64(height)) }
