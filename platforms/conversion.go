// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"math"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Conversion holds the parameters for converting a video that the platform would not accept unchanged. The result is an
// MP4 with H.264 and AAC.
type Conversion struct {
	// Width and Height are in pixels, and even.
	Width, Height int
	// FrameRate is in frames per second; zero keeps the original frame rate.
	FrameRate float64
	// BitRate is the maximum bit rate of the video track, in bits per second.
	BitRate int64
}

// bitRates are the maximum bit rates by pixel count. They follow the platforms' upload recommendations and are higher
// than most videos need.
var bitRates = []struct{ pixels, bits int64 }{{640 * 480, 4_000_000}, {1280 * 720, 8_000_000}, {1920 * 1200, 12_000_000}}

// maxBits is the maximum bit rate of larger videos, in bits per second. minBits is the minimum, even if the file
// size limit calls for less.
const maxBits, minBits = 40_000_000, 200_000

// ForConversion returns the limits for teams that have videos converted. They include the codecs of DoubtfulVideos, so
// a video whose codec the platform might refuse is converted.
func (c Capabilities) ForConversion() VideoLimits {
	l := c.Videos
	l.MaxBytes = c.MaxVideoBytes
	if len(c.DoubtfulVideos.Codecs) > 0 {
		l.Codecs = c.DoubtfulVideos.Codecs
	}
	if len(c.DoubtfulVideos.AudioCodecs) > 0 {
		l.AudioCodecs = c.DoubtfulVideos.AudioCodecs
	}
	return l
}

// Converts reports whether a video should be converted: it exceeds a limit, and the converted file would not.
func (l VideoLimits) Converts(f *File) bool {
	if !f.IsVideo() || l.accepts(f) {
		return false
	}
	after := l.Conversion(f).After(f)
	return l.accepts(&after)
}

func (l VideoLimits) accepts(f *File) bool {
	return len(l.Problems(f, "")) == 0 && (l.MaxBytes == 0 || f.Size <= l.MaxBytes)
}

// Conversion returns the parameters for converting a video. The aspect ratio and the duration do not change, so a video
// that exceeds the limits for these will still exceed them.
func (l VideoLimits) Conversion(f *File) Conversion {
	width, height := l.size(f.Width, f.Height)
	c := Conversion{Width: width, Height: height, FrameRate: l.rate(f), BitRate: maxBits}
	for _, r := range bitRates {
		if int64(width)*int64(height) <= r.pixels {
			c.BitRate = r.bits
			break
		}
	}
	if l.MaxBitRate > 0 {
		// The remaining quarter is for the audio track and the container.
		c.BitRate = min(c.BitRate, l.MaxBitRate*3/4)
	}
	if seconds := f.Duration.Seconds(); l.MaxBytes > 0 && seconds > 0 {
		c.BitRate = min(c.BitRate, max(int64(float64(l.MaxBytes)*8*3/4/seconds), minBits))
	}
	return c
}

// After returns a video's properties after the conversion. The size is an estimate.
func (c Conversion) After(f *File) File {
	after := *f
	after.Width, after.Height = c.Width, c.Height
	if c.FrameRate > 0 {
		after.FrameRate, after.FrameRateVaries = c.FrameRate, false
	}
	after.MIMEType, after.VideoCodec = v1alpha1.MimeMP4, "h264"
	if after.AudioCodec != "" {
		after.AudioCodec = "aac"
	}
	after.Size = min(f.Size, int64(float64(c.BitRate)/8*f.Duration.Seconds()))
	return after
}

// size returns the size to convert to: it has the same aspect ratio, is within the limits, and has even sides, as H.264
// requires.
func (l VideoLimits) size(width, height int) (int, int) {
	w, h := float64(width), float64(height)
	scale := 1.0
	if short := min(w, h); l.MinSide > 0 && short < float64(l.MinSide) {
		scale = float64(l.MinSide) / short
	}
	if l.MaxSide > 0 {
		scale = min(scale, float64(l.MaxSide)/max(w, h))
	}
	if l.MaxWidth > 0 {
		scale = min(scale, float64(l.MaxWidth)/w)
	}
	if l.MaxPixels > 0 && w*h*scale*scale > float64(l.MaxPixels) {
		// Rounding to even sides must not exceed the limit.
		scale = math.Sqrt(float64(l.MaxPixels) / (w * h))
		return evenBelow(w * scale), evenBelow(h * scale)
	}
	return even(w * scale), even(h * scale)
}

func evenBelow(n float64) int { return max(2*int(n/2), 2) }

func even(n float64) int { return max(2*int(math.Round(n/2)), 2) }

// usualRate is the frame rate to convert to if the original is too low, variable or unknown, because platforms require
// a constant rate. maxRate is the maximum.
const usualRate, maxRate = 30, 60

// rate returns the frame rate to convert to; zero keeps the original rate.
func (l VideoLimits) rate(f *File) float64 {
	most := l.MaxFrameRate
	if most == 0 {
		most = maxRate
	}
	usual := min(max(usualRate, l.MinFrameRate), most)
	switch {
	case f.FrameRate == 0, f.FrameRateVaries && l.MinFrameRate+l.MaxFrameRate > 0, f.FrameRate < l.MinFrameRate*(1-aboutRate):
		return usual
	case f.FrameRate > most*(1+aboutRate):
		return most
	default:
		return 0
	}
}
