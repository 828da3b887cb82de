// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

func TestConversion(t *testing.T) {
	reels := platforms.VideoLimits{MaxWidth: 1920, MinFrameRate: 23, MaxFrameRate: 60, MaxBitRate: 12_000_000}
	sides := platforms.VideoLimits{MinSide: 360, MaxSide: 4096}
	tests := map[string]struct {
		reason        string
		limits        platforms.VideoLimits
		width, height int
		rate          float64
		varies        bool
		want          platforms.Conversion
	}{
		"4K":                  {"columns are bounded", reels, 3840, 2160, 29.97, false, platforms.Conversion{Width: 1920, Height: 1080, BitRate: 9_000_000}},
		"4K upright":          {"and rows are not", reels, 2160, 3840, 60.02, false, platforms.Conversion{Width: 1920, Height: 3414, BitRate: 9_000_000}},
		"8K":                  {"both sides are bounded", sides, 4320, 7680, 30, false, platforms.Conversion{Width: 2304, Height: 4096, BitRate: 40_000_000}},
		"small":               {"a picture grows to the least", sides, 320, 240, 30, false, platforms.Conversion{Width: 480, Height: 360, BitRate: 4_000_000}},
		"odd":                 {"H.264 has even sides", platforms.VideoLimits{}, 641, 361, 30, false, platforms.Conversion{Width: 642, Height: 362, BitRate: 4_000_000}},
		"a line":              {"no size is within both bounds, and the shape stays", sides, 8192, 64, 30, false, platforms.Conversion{Width: 4096, Height: 32, BitRate: 4_000_000}},
		"slow motion":         {"the most frames that are taken", reels, 720, 1280, 240, false, platforms.Conversion{Width: 720, Height: 1280, FrameRate: 60, BitRate: 8_000_000}},
		"a webcam":            {"frames are repeated", reels, 640, 480, 10, false, platforms.Conversion{Width: 640, Height: 480, FrameRate: 30, BitRate: 4_000_000}},
		"a recorded screen":   {"a rate that is measured must be constant", reels, 640, 480, 47, true, platforms.Conversion{Width: 640, Height: 480, FrameRate: 30, BitRate: 4_000_000}},
		"a rate not known":    {"nothing says that it fits", reels, 640, 480, 0, false, platforms.Conversion{Width: 640, Height: 480, FrameRate: 30, BitRate: 4_000_000}},
		"a rate nobody minds": {"it stays as it is", platforms.VideoLimits{}, 640, 480, 47, true, platforms.Conversion{Width: 640, Height: 480, BitRate: 4_000_000}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := platforms.File{Width: tc.width, Height: tc.height, FrameRate: tc.rate, FrameRateVaries: tc.varies, Duration: time.Minute, Size: 1 << 30, VideoCodec: "hevc", AudioCodec: "pcm"}
			got := tc.limits.Conversion(&f)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			after := got.After(&f)
			if problems := tc.limits.Problems(&after, "x"); len(problems) > 0 && name != "a line" {
				t.Errorf("%s: it is still beyond a bound: %v", tc.reason, problems)
			}
		})
	}
}
