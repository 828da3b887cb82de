// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import "math"

// Conversion is what a video becomes for a platform that does not take it as it is: an MP4
// with H.264 and AAC.
type Conversion struct {
	// Width and Height are those of the picture, in pixels, both even.
	Width, Height int
	// FrameRate is how many frames it has in a second; zero keeps those of the video.
	FrameRate float64
	// BitRate bounds the bits of the picture for a second.
	BitRate int64
}

// bitRates are how many bits a second of a picture with so many pixels gets at most: what
// platforms recommend for uploads, and more than most pictures need.
var bitRates = []struct{ pixels, bits int64 }{{640 * 480, 4_000_000}, {1280 * 720, 8_000_000}, {1920 * 1200, 12_000_000}}

// mostBits is how many bits a second of a larger picture gets, and leastBits how many one gets
// however few bytes the file may have.
const mostBits, leastBits = 40_000_000, 200_000

// ForConversion returns the limits for teams whose videos are converted: a video that a
// platform may refuse is converted as well.
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

// Converts reports whether a video is converted: it is beyond a bound, and what it becomes is
// within all of them.
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

// Conversion returns what a video becomes. Its shape and its length stay: a video that is
// beyond the bounds of these is beyond them afterwards.
func (l VideoLimits) Conversion(f *File) Conversion {
	width, height := l.size(f.Width, f.Height)
	c := Conversion{Width: width, Height: height, FrameRate: l.rate(f), BitRate: mostBits}
	for _, r := range bitRates {
		if int64(width)*int64(height) <= r.pixels {
			c.BitRate = r.bits
			break
		}
	}
	if l.MaxBitRate > 0 {
		// Sound and the container come on top of the picture.
		c.BitRate = min(c.BitRate, l.MaxBitRate*3/4)
	}
	if seconds := f.Duration.Seconds(); l.MaxBytes > 0 && seconds > 0 {
		c.BitRate = min(c.BitRate, max(int64(float64(l.MaxBytes)*8*3/4/seconds), leastBits))
	}
	return c
}

// After returns what is known of a video once it has become this.
func (c Conversion) After(f *File) File {
	after := *f
	after.Width, after.Height = c.Width, c.Height
	if c.FrameRate > 0 {
		after.FrameRate, after.FrameRateVaries = c.FrameRate, false
	}
	after.VideoCodec = "h264"
	if after.AudioCodec != "" {
		after.AudioCodec = "aac"
	}
	after.Size = min(f.Size, int64(float64(c.BitRate)/8*f.Duration.Seconds()))
	return after
}

// size returns the size that a picture gets: the same shape within the bounds, and even sides,
// which H.264 needs.
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
	return even(w * scale), even(h * scale)
}

// even rounds to an even number of pixels, two at least.
func even(n float64) int { return max(2*int(math.Round(n/2)), 2) }

// usualRate is the frame rate of a conversion whose own rate is too low, varies, or is not
// known; platforms measure a constant one. mostRate is the greatest.
const usualRate, mostRate = 30, 60

// rate returns the frame rate that a video gets; zero keeps its own.
func (l VideoLimits) rate(f *File) float64 {
	most := l.MaxFrameRate
	if most == 0 {
		most = mostRate
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
