// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

func TestVideoLimits(t *testing.T) {
	limits := platforms.VideoLimits{
		MinDuration: 3 * time.Second, MaxDuration: 140 * time.Second, MinSide: 32, MaxSide: 4096, MaxWidth: 1920, MinAspect: 0.01, MaxAspect: 3,
		MinFrameRate: 23, MaxFrameRate: 60, MaxBitRate: 25_000_000, Codecs: []string{"h264", "hevc"}, AudioCodecs: []string{"aac"},
	}
	fits := platforms.File{
		Size: 1 << 20, Width: 1080, Height: 1920, Duration: 10 * time.Second, FrameRate: 29.97, VideoCodec: "h264", AudioCodec: "aac",
	}
	tests := map[string]struct {
		reason string
		change func(f *platforms.File)
		want   []string
	}{
		"one that fits":   {"nothing is beyond a bound", func(*platforms.File) {}, nil},
		"nothing known":   {"what is not known is not judged: a file that an earlier version verified has fewer facts", func(f *platforms.File) { *f = platforms.File{Size: 1 << 40} }, nil},
		"short":           {"the length is named as people say it", func(f *platforms.File) { f.Duration = 500 * time.Millisecond }, []string{"plays for 0.5 s; x takes at least 3 s"}},
		"long":            {"minutes are said from two on", func(f *platforms.File) { f.Duration = 5*time.Minute + time.Second }, []string{"plays for 5 min 1 s; x takes at most 2 min 20 s"}},
		"a hair too long": {"sound often ends some frames behind the picture", func(f *platforms.File) { f.Duration = 140*time.Second + 40*time.Millisecond }, nil},
		"narrow":          {"both are said", func(f *platforms.File) { f.Width, f.Height = 16, 1920 }, []string{"has 16 × 1920 pixels; x takes at least 32 on each side", "has 16 × 1920 pixels; x takes a video that is at most 100 times as high as wide"}},
		"4K":              {"what phones record", func(f *platforms.File) { f.Width, f.Height = 3840, 2160 }, []string{"has 3840 × 2160 pixels; x takes at most 1920 columns"}},
		"4K that stands":  {"the bound is one of columns", func(f *platforms.File) { f.Width, f.Height = 2160, 3840 }, []string{"has 2160 × 3840 pixels; x takes at most 1920 columns"}},
		"8K":              {"each bound is named", func(f *platforms.File) { f.Width, f.Height = 1900, 7680 }, []string{"has 1900 × 7680 pixels; x takes at most 4096 on each side"}},
		"wide":            {"the shape is named", func(f *platforms.File) { f.Width, f.Height = 1920, 64 }, []string{"has 1920 × 64 pixels; x takes a video that is at most 3 times as wide as high"}},
		"slow motion":     {"phones record 120 and 240 frames", func(f *platforms.File) { f.FrameRate = 119.88 }, []string{"has 119.88 frames a second; x takes at most 60"}},
		"60 by a clock":   {"phones are off by a little", func(f *platforms.File) { f.FrameRate = 60.02 }, nil},
		"23.976":          {"films of cinemas", func(f *platforms.File) { f.FrameRate = 22.9 }, nil},
		"ten frames":      {"recorded by a webcam", func(f *platforms.File) { f.FrameRate = 10 }, []string{"has 10 frames a second; x takes at least 23"}},
		"rates that vary": {"the average says little of a recorded screen", func(f *platforms.File) { f.FrameRate, f.FrameRateVaries = 10, true }, nil},
		"bits":            {"4K from a camera", func(f *platforms.File) { f.Size = 100_000_000 }, []string{"has 80 Mbit for each second; x takes at most 25"}},
		"codecs":          {"the codec is named, and what is taken", func(f *platforms.File) { f.VideoCodec, f.AudioCodec = "prores", "pcm" }, []string{"is encoded as prores; x takes h264, hevc", "has sound that is encoded as pcm; x takes aac"}},
		"silent":          {"a video needs no sound", func(f *platforms.File) { f.AudioCodec = "" }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := fits
			tc.change(&f)
			if diff := cmp.Diff(tc.want, limits.Problems(&f, "x")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	endless := fits
	endless.Duration = 13*time.Hour + 90*time.Second
	if got := strings.Join((platforms.VideoLimits{MaxDuration: 12 * time.Hour}).Problems(&endless, "youtube"), ""); got != "plays for 13 h 1 min; youtube takes at most 12 h" {
		t.Errorf("hours: %s", got)
	}
}
