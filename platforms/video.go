// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// VideoLimits are a platform's video limits. A zero value means no limit.
type VideoLimits struct {
	// Types are the accepted formats; nil means all upload formats, and an empty list means none.
	Types []v1alpha1.MimeType
	// MinDuration and MaxDuration bound the playing time.
	MinDuration, MaxDuration time.Duration
	// MinSide and MaxSide bound both sides of the video, and MaxWidth its width, in pixels.
	MinSide, MaxSide, MaxWidth int
	// MaxPixels bounds the product of width and height.
	MaxPixels int64
	// MinAspect and MaxAspect bound width divided by height.
	MinAspect, MaxAspect float64
	// MinFrameRate and MaxFrameRate bound the frames per second.
	MinFrameRate, MaxFrameRate float64
	// MaxBitRate bounds the average bit rate, in bits per second, and MaxBytes the file size. Problems does not check
	// MaxBytes.
	MaxBitRate, MaxBytes int64
	// Codecs are the accepted video codecs and AudioCodecs the accepted audio codecs, by their ffmpeg names; empty
	// means all.
	Codecs, AudioCodecs []string
}

// aboutRate is the tolerance for frame rates, as a fraction of the bound: frame times are rounded, and a nominal 60 fps
// is often measured as 60.02.
const aboutRate = 0.02

// Problems returns a message for each limit that a video exceeds, with the video's value and the named platform's
// limit. Unknown properties are not checked.
func (l VideoLimits) Problems(f *File, platform string) []string {
	var problems []string
	add := func(beyond bool, format string, args ...any) {
		if beyond {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	switch {
	case f.MIMEType == "" || l.Types == nil:
	case len(l.Types) == 0:
		add(true, "is of type %s, which the server of an account on %s does not accept", f.MIMEType, platform)
	default:
		add(!slices.Contains(l.Types, f.MIMEType), "is of type %s; %s accepts %s", f.MIMEType, platform, listed(l.Types))
	}
	if f.Duration > 0 {
		add(f.Duration < l.MinDuration, "plays for %s; %s accepts at least %s", playing(f.Duration), platform, playing(l.MinDuration))
		add(l.MaxDuration > 0 && f.Duration.Truncate(time.Second) > l.MaxDuration, "plays for %s; %s accepts at most %s", playing(f.Duration), platform, playing(l.MaxDuration))
		rate := float64(f.Size) * 8 / f.Duration.Seconds()
		add(l.MaxBitRate > 0 && rate > float64(l.MaxBitRate), "has %s Mbit for each second; %s accepts at most %s", number(rate/1e6), platform, number(float64(l.MaxBitRate)/1e6))
	}
	if f.Width > 0 && f.Height > 0 {
		size := fmt.Sprintf("has %d × %d pixels", f.Width, f.Height)
		short, long, aspect := min(f.Width, f.Height), max(f.Width, f.Height), float64(f.Width)/float64(f.Height)
		add(short < l.MinSide, "%s; %s accepts at least %d on each side", size, platform, l.MinSide)
		add(l.MaxSide > 0 && long > l.MaxSide, "%s; %s accepts at most %d on each side", size, platform, l.MaxSide)
		add(l.MaxPixels > 0 && int64(f.Width)*int64(f.Height) > l.MaxPixels, "%s; %s accepts at most %d in all", size, platform, l.MaxPixels)
		add(l.MaxWidth > 0 && f.Width > l.MaxWidth, "%s; %s accepts at most %d columns", size, platform, l.MaxWidth)
		add(l.MinAspect > 0 && aspect < l.MinAspect, "%s; %s accepts a video that is at most %s times as high as wide", size, platform, number(1/l.MinAspect))
		add(l.MaxAspect > 0 && aspect > l.MaxAspect, "%s; %s accepts a video that is at most %s times as wide as high", size, platform, number(l.MaxAspect))
	}
	if f.FrameRate > 0 && !f.FrameRateVaries {
		rate := fmt.Sprintf("has %s frames a second", number(f.FrameRate))
		add(f.FrameRate < l.MinFrameRate*(1-aboutRate), "%s; %s accepts at least %s", rate, platform, number(l.MinFrameRate))
		add(l.MaxFrameRate > 0 && f.FrameRate > l.MaxFrameRate*(1+aboutRate), "%s; %s accepts at most %s", rate, platform, number(l.MaxFrameRate))
	}
	add(beside(l.Codecs, f.VideoCodec), "is encoded as %s; %s accepts %s", f.VideoCodec, platform, strings.Join(l.Codecs, ", "))
	add(beside(l.AudioCodecs, f.AudioCodec), "has audio encoded as %s; %s accepts %s", f.AudioCodec, platform, strings.Join(l.AudioCodecs, ", "))
	return problems
}

// beside reports whether the codec is known and not in the list.
func beside(codecs []string, codec string) bool {
	return codec != "" && len(codecs) > 0 && !slices.Contains(codecs, codec)
}

func listed(types []v1alpha1.MimeType) string {
	names := make([]string, len(types))
	for i, name := range types {
		names[i] = string(name)
	}
	return strings.Join(names, ", ")
}

func playing(d time.Duration) string {
	large, small, in := "min", "s", time.Minute
	switch {
	case d < 2*time.Minute:
		return number(d.Seconds()) + " s"
	case d >= 2*time.Hour:
		large, small, in = "h", "min", time.Hour
	}
	const parts = 60
	text := fmt.Sprintf("%d %s", d/in, large)
	if rest := d % in / (in / parts); rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, small)
	}
	return text
}

func number(n float64) string {
	const hundred = 100
	return strconv.FormatFloat(math.Round(n*hundred)/hundred, 'f', -1, 64)
}
