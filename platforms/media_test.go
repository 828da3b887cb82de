// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

func TestImageLimitsAccepts(t *testing.T) {
	limits := platforms.ImageLimits{
		Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimeWebP}, MaxBytes: 1000, MaxWidth: 1080, MaxHeight: 1920, MinAspect: 0.5, MaxAspect: 2,
	}
	turned := limits
	turned.EitherWay, turned.MinAspect, turned.MaxAspect = true, 0, 0
	single := platforms.ImageLimits{OnePicture: true}
	file := func(mimeType v1alpha1.MimeType, size int64, width, height int) platforms.File {
		return platforms.File{MIMEType: mimeType, Size: size, Width: width, Height: height}
	}
	for name, tc := range map[string]struct {
		why    string
		limits platforms.ImageLimits
		file   platforms.File
		want   bool
	}{
		"fits":                   {"every bound is met exactly", limits, file(v1alpha1.MimeWebP, 1000, 1080, 540), true},
		"another type":           {"PNG is not listed", limits, file(v1alpha1.MimePNG, 10, 100, 100), false},
		"too long":               {"one byte more", limits, file(v1alpha1.MimeJPEG, 1001, 100, 100), false},
		"too wide":               {"one pixel more", limits, file(v1alpha1.MimeJPEG, 10, 1081, 1000), false},
		"too high":               {"one pixel more", limits, file(v1alpha1.MimeJPEG, 10, 1000, 1921), false},
		"too flat":               {"wider than twice its height", limits, file(v1alpha1.MimeJPEG, 10, 201, 100), false},
		"too steep":              {"higher than twice its width", limits, file(v1alpha1.MimeJPEG, 10, 100, 201), false},
		"lying":                  {"the bounds may be turned", turned, file(v1alpha1.MimeJPEG, 10, 1920, 1080), true},
		"standing":               {"a video within the bounds", turned, file(v1alpha1.MimeJPEG, 10, 1080, 1920), true},
		"lying, large":           {"one pixel more", turned, file(v1alpha1.MimeJPEG, 10, 1920, 1081), false},
		"square":                 {"too large in both orientations", turned, file(v1alpha1.MimeJPEG, 10, 1081, 1081), false},
		"no size":                {"an unknown size is accepted", limits, file(v1alpha1.MimeJPEG, 10, 0, 0), true},
		"missing":                {"a missing file cannot be converted", limits, platforms.File{Name: "gone"}, true},
		"video":                  {"only images are checked", limits, file(v1alpha1.MimeMP4, 1<<30, 3840, 2160), true},
		"turned":                 {"no platform promises to turn it", platforms.ImageLimits{}, platforms.File{MIMEType: v1alpha1.MimeJPEG, Turned: true}, false},
		"stuck":                  {"the photo cannot be rotated here; most platforms rotate it", platforms.ImageLimits{}, platforms.File{MIMEType: v1alpha1.MimeJPEG, Turned: true, Unconvertible: "is"}, true},
		"several":                {"refused by Instagram's documentation", single, platforms.File{MIMEType: v1alpha1.MimeJPEG, MultiPicture: true}, false},
		"several other pictures": {"decoders ignore additional data", platforms.ImageLimits{}, platforms.File{MIMEType: v1alpha1.MimeJPEG, MultiPicture: true}, true},
		"one":                    {"a single picture", single, platforms.File{MIMEType: v1alpha1.MimeJPEG}, true},
		"all pixels":             {"the product is met exactly", platforms.ImageLimits{MaxPixels: 1_000_000}, file(v1alpha1.MimeJPEG, 10, 10_000, 100), true},
		"too many pixels":        {"one column more", platforms.ImageLimits{MaxPixels: 1_000_000}, file(v1alpha1.MimeJPEG, 10, 10_001, 100), false},
		"no bounds":              {"an image without limits is accepted", platforms.ImageLimits{}, file(v1alpha1.MimePNG, 20<<20, 1, 16000), true},
	} {
		if got := tc.limits.Accepts(&tc.file); got != tc.want {
			t.Errorf("%s (%s): got %t", name, tc.why, got)
		}
	}
}

func TestImageLimitsFor(t *testing.T) {
	standing := platforms.ImageLimits{MaxWidth: 1080, MaxHeight: 1920, EitherWay: true}
	lying := platforms.ImageLimits{MaxWidth: 1920, MaxHeight: 1080, EitherWay: true}
	fixed := platforms.ImageLimits{MaxWidth: 1080, MaxHeight: 1920}
	for name, tc := range map[string]struct {
		why           string
		limits        platforms.ImageLimits
		width, height int
		want          platforms.ImageLimits
	}{
		"unrotated": {"the picture has the same orientation", standing, 2000, 3000, standing},
		"turned":    {"the displayed picture has the other orientation", standing, 3000, 2000, lying},
		"turned up": {"the reverse", lying, 2000, 3000, standing},
		"unknown":   {"an unknown size is not rotated", standing, 0, 0, standing},
		"fixed":     {"rotation is disabled", fixed, 3000, 2000, fixed},
		"pixels":    {"the shape stays", platforms.ImageLimits{MaxPixels: 1_000_000}, 4000, 1000, platforms.ImageLimits{MaxPixels: 1_000_000, MaxWidth: 2000, MaxHeight: 500}},
		"a line":    {"an image has at least one row", platforms.ImageLimits{MaxPixels: 100}, 16000, 1, platforms.ImageLimits{MaxPixels: 100, MaxWidth: 1264, MaxHeight: 1}},
		"few":       {"an image within the limit is not changed", platforms.ImageLimits{MaxPixels: 1_000_000}, 400, 100, platforms.ImageLimits{MaxPixels: 1_000_000}},
	} {
		file := platforms.File{MIMEType: v1alpha1.MimeJPEG, Width: tc.width, Height: tc.height}
		if diff := cmp.Diff(tc.want, tc.limits.For(&file)); diff != "" {
			t.Errorf("%s (%s) (-want +got):\n%s", name, tc.why, diff)
		}
	}
}

func TestPictureURL(t *testing.T) {
	t.Parallel()
	for address, tc := range map[string]struct {
		reason string
		shown  bool
	}{
		"https://pbs.example/a.png?x=1":            {"platforms use this form", true},
		"http://127.0.0.1:9100/a.svg":              {"a simulated platform on this machine", true},
		"http://[::1]:9100/a.svg":                  {"a loopback IPv6 address", true},
		"http://localhost:9100/a.svg":              {"the name of the loopback interface", true},
		"http://pbs.example/a.png":                 {"HTTP reveals the viewer's requests", false},
		"http://10.0.0.1/a.png":                    {"a page inside of a company", false},
		"http://127.0.0.1.evil.example/a":          {"a host name is not an address", false},
		"javascript:alert(1)":                      {"a script", false},
		"JaVaScRiPt:alert(1)":                      {"in any spelling", false},
		"data:image/svg+xml,<svg onload=alert(1)>": {"a picture with a script", false},
		"file:///etc/passwd":                       {"a file", false},
		"//pbs.example/a.png":                      {"the address inherits the page's scheme", false},
		"/signout":                                 {"a page of Herald's", false},
		"https://user:word@pbs.example/a":          {"a URL with a password", false},
		"https:":                                   {"no host", false},
		"https:pbs.example/a":                      {"no host after the scheme", false},
		" https://pbs.example/a":                   {"not an address", false},
		"https://pbs.example/\x00":                 {"an invalid URL", false},
		"":                                         {"no picture", false},
	} {
		want := ""
		if tc.shown {
			want = address
		}
		if got := platforms.PictureURL(address); got != want {
			t.Errorf("%q (%s): got %q", address, tc.reason, got)
		}
	}
}

func TestLow(t *testing.T) {
	for _, tc := range []struct {
		reason     string
		most, left int
		want       bool
	}{
		{"a tenth is little", 250, 25, true},
		{"more than a tenth is not", 250, 26, false},
		{"with few frames, the last ones are a large part", 5, 1, false},
		{"zero is little", 5, 0, true},
		{"a low remainder is reported even without a total", 0, 0, true},
		{"negative remainders are reported", 50, -3, true},
	} {
		if got := platforms.Low(tc.most, tc.left); got != tc.want {
			t.Errorf("%s: %d of %d is low: %v", tc.reason, tc.left, tc.most, got)
		}
	}
}

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
		"4K":                   {"columns are bounded", reels, 3840, 2160, 29.97, false, platforms.Conversion{Width: 1920, Height: 1080, BitRate: 9_000_000}},
		"4K upright":           {"the number of rows is unlimited", reels, 2160, 3840, 60.02, false, platforms.Conversion{Width: 1920, Height: 3414, BitRate: 9_000_000}},
		"8K":                   {"both sides are bounded", sides, 4320, 7680, 30, false, platforms.Conversion{Width: 2304, Height: 4096, BitRate: 40_000_000}},
		"small":                {"a picture grows to the least", sides, 320, 240, 30, false, platforms.Conversion{Width: 480, Height: 360, BitRate: 4_000_000}},
		"odd":                  {"H.264 has even sides", platforms.VideoLimits{}, 641, 361, 30, false, platforms.Conversion{Width: 642, Height: 362, BitRate: 4_000_000}},
		"a line":               {"no size is within both bounds, and the shape stays", sides, 8192, 64, 30, false, platforms.Conversion{Width: 4096, Height: 32, BitRate: 4_000_000}},
		"slow motion":          {"the maximum frame rate", reels, 720, 1280, 240, false, platforms.Conversion{Width: 720, Height: 1280, FrameRate: 60, BitRate: 8_000_000}},
		"a webcam":             {"frames are repeated", reels, 640, 480, 10, false, platforms.Conversion{Width: 640, Height: 480, FrameRate: 30, BitRate: 4_000_000}},
		"a recorded screen":    {"a rate that is measured must be constant", reels, 640, 480, 47, true, platforms.Conversion{Width: 640, Height: 480, FrameRate: 30, BitRate: 4_000_000}},
		"unknown rate":         {"an unknown frame rate may exceed the limit", reels, 640, 480, 0, false, platforms.Conversion{Width: 640, Height: 480, FrameRate: 30, BitRate: 4_000_000}},
		"pixels":               {"the product is bounded, also after rounding", platforms.VideoLimits{MaxPixels: 2_000_000}, 1920, 1080, 30, false, platforms.Conversion{Width: 1884, Height: 1060, BitRate: 12_000_000}},
		"no limit of the rate": {"without a limit, the frame rate is not changed", platforms.VideoLimits{}, 640, 480, 47, true, platforms.Conversion{Width: 640, Height: 480, BitRate: 4_000_000}},
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
		"a fitting video":    {"no limit is exceeded", func(*platforms.File) {}, nil},
		"unknown properties": {"unknown properties are accepted: files verified by earlier versions have fewer", func(f *platforms.File) { *f = platforms.File{Size: 1 << 40} }, nil},
		"short":              {"the duration is shown in seconds", func(f *platforms.File) { f.Duration = 500 * time.Millisecond }, []string{"plays for 0.5 s; x accepts at least 3 s"}},
		"long":               {"the duration is shown in minutes from two on", func(f *platforms.File) { f.Duration = 5*time.Minute + time.Second }, []string{"plays for 5 min 1 s; x accepts at most 2 min 20 s"}},
		"a hair too long":    {"sound often ends some frames before the picture", func(f *platforms.File) { f.Duration = 140*time.Second + 40*time.Millisecond }, nil},
		"narrow":             {"both are reported", func(f *platforms.File) { f.Width, f.Height = 16, 1920 }, []string{"has 16 × 1920 pixels; x accepts at least 32 on each side", "has 16 × 1920 pixels; x accepts a video that is at most 100 times as high as wide"}},
		"4K":                 {"phones record 4K", func(f *platforms.File) { f.Width, f.Height = 3840, 2160 }, []string{"has 3840 × 2160 pixels; x accepts at most 1920 columns"}},
		"upright 4K":         {"the limit applies to columns", func(f *platforms.File) { f.Width, f.Height = 2160, 3840 }, []string{"has 2160 × 3840 pixels; x accepts at most 1920 columns"}},
		"8K":                 {"each bound is named", func(f *platforms.File) { f.Width, f.Height = 1900, 7680 }, []string{"has 1900 × 7680 pixels; x accepts at most 4096 on each side"}},
		"wide":               {"the shape is named", func(f *platforms.File) { f.Width, f.Height = 1920, 64 }, []string{"has 1920 × 64 pixels; x accepts a video that is at most 3 times as wide as high"}},
		"slow motion":        {"phones record 120 and 240 frames", func(f *platforms.File) { f.FrameRate = 119.88 }, []string{"has 119.88 frames a second; x accepts at most 60"}},
		"60 by a clock":      {"phones are off by a little", func(f *platforms.File) { f.FrameRate = 60.02 }, nil},
		"23.976":             {"films of cinemas", func(f *platforms.File) { f.FrameRate = 22.9 }, nil},
		"ten frames":         {"recorded by a webcam", func(f *platforms.File) { f.FrameRate = 10 }, []string{"has 10 frames a second; x accepts at least 23"}},
		"rates that vary":    {"the average is not representative of a screen recording", func(f *platforms.File) { f.FrameRate, f.FrameRateVaries = 10, true }, nil},
		"bits":               {"4K from a camera", func(f *platforms.File) { f.Size = 100_000_000 }, []string{"has 80 Mbit for each second; x accepts at most 25"}},
		"codecs":             {"the codec is named, with the accepted ones", func(f *platforms.File) { f.VideoCodec, f.AudioCodec = "prores", "pcm" }, []string{"is encoded as prores; x accepts h264, hevc", "has audio encoded as pcm; x accepts aac"}},
		"silent":             {"a video needs no sound", func(f *platforms.File) { f.AudioCodec = "" }, nil},
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
	if got := strings.Join((platforms.VideoLimits{MaxDuration: 12 * time.Hour}).Problems(&endless, "youtube"), ""); got != "plays for 13 h 1 min; youtube accepts at most 12 h" {
		t.Errorf("hours: %s", got)
	}
}
