// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// videoConverter returns a converter that uses this machine's ffmpeg.
func videoConverter(t *testing.T) rendition.FFmpegConverter {
	t.Helper()
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("this test needs ffmpeg in PATH; install it (apt-get install ffmpeg)")
	}
	return rendition.FFmpegConverter{Path: path}
}

// film reads a video, or makes one with ffmpeg from a test picture and a tone.
func film(t *testing.T, program, arguments string) []byte {
	t.Helper()
	path := arguments
	if !strings.HasPrefix(path, "..") {
		path = filepath.Join(t.TempDir(), "film.mov")
		args := append([]string{"-v", "error", "-f", "lavfi", "-i"}, strings.Fields(arguments)...)
		out, err := exec.CommandContext(t.Context(), program, append(args, path)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	data, err := os.ReadFile(path)
	must.Succeed(t, err)
	return data
}

func sampleTranscode(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must.Succeed(t, err)
	return data
}

func transcodeVideo(data []byte) rendition.VideoSource {
	return rendition.VideoSource{Size: int64(len(data)), Open: func(_ context.Context, offset, length int64) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(bytes.NewReader(data), offset, length)), nil
	}}
}

// facts returns the facts about a video.
func facts(t *testing.T, data []byte) probe.Facts {
	t.Helper()
	f, err := probe.Probe(bytes.NewReader(data), int64(len(data)), "video/mp4")
	must.Succeed(t, err)
	return f
}

// conversion returns the conversion of a video for a platform with the given limits.
func conversion(f *probe.Facts, limits platforms.VideoLimits) *rendition.Conversion {
	c := limits.Conversion(&platforms.File{Width: int(f.Width), Height: int(f.Height), Duration: f.Duration, FrameRate: f.FrameRate, FrameRateVaries: f.FrameRateVaries})
	return &rendition.Conversion{
		Source: rendition.TranscodeSource{Duration: f.Duration}, HDR: f.HDR,
		Target: rendition.Profile{Width: c.Width, Height: c.Height, FrameRate: c.FrameRate, BitRate: c.BitRate},
	}
}

func TestConvert(t *testing.T) {
	program := videoConverter(t)
	reels := platforms.VideoLimits{MaxWidth: 1920, MinFrameRate: 23, MaxFrameRate: 60, MaxBitRate: 25_000_000}
	for name, tc := range map[string]struct {
		reason string
		film   string
		limits platforms.VideoLimits
		want   probe.Facts
	}{
		"4K": {
			"phones record 4K", "testsrc2=s=3840x2160:r=30:d=1 -f lavfi -i sine=d=1 -c:v libx264 -preset ultrafast", reels,
			probe.Facts{Width: 1920, Height: 1080, FrameRate: 30, AudioCodec: "aac"},
		},
		"slow motion": {
			"the shape and the sound stay", "testsrc2=s=720x1280:r=240:d=1 -c:v libx264 -preset ultrafast", reels,
			probe.Facts{Width: 720, Height: 1280, FrameRate: 60},
		},
		"ten frames": {
			"a webcam", "testsrc2=s=640x480:r=10:d=1 -c:v libx264 -preset ultrafast", reels,
			probe.Facts{Width: 640, Height: 480, FrameRate: 30},
		},
		"a camera's codecs": {
			"ProRes with PCM", "testsrc2=s=640x360:r=25:d=1 -f lavfi -i sine=d=1 -c:v prores_ks -c:a pcm_s16le", reels,
			probe.Facts{Width: 640, Height: 360, FrameRate: 25, AudioCodec: "aac"},
		},
		"HDR": {
			"colours beyond a screen's are mapped to its own",
			"testsrc2=s=1280x720:r=25:d=1 -pix_fmt yuv420p10le -c:v libx265 -preset ultrafast -x265-params log-level=none -tag:v hvc1 -color_primaries bt2020 -color_trc arib-std-b67 -colorspace bt2020nc", reels,
			probe.Facts{Width: 1280, Height: 720, FrameRate: 25},
		},
		"too small": {
			"TikTok requires at least 360 pixels", "testsrc2=s=320x240:r=25:d=1 -c:v libx264 -preset ultrafast",
			platforms.VideoLimits{MinSide: 360, MaxSide: 4096},
			probe.Facts{Width: 480, Height: 360, FrameRate: 25},
		},
		"turned": {
			"the picture is displayed upright", "../probe/testdata/rotated.mp4",
			platforms.VideoLimits{MaxWidth: 36, MinFrameRate: 23},
			probe.Facts{Width: 36, Height: 48, FrameRate: 30},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := film(t, program.Path, tc.film)
			from := facts(t, data)
			output, err := os.CreateTemp(t.TempDir(), "converted")
			must.Succeed(t, err)
			last := 0.0
			if err := program.Convert(t.Context(), transcodeVideo(data), conversion(&from, tc.limits), output, func(share float64) { last = share }); err != nil {
				t.Fatalf("%v: %v", err, errors.Unwrap(err))
			}
			converted, err := os.ReadFile(output.Name())
			must.Succeed(t, err)
			got := facts(t, converted)
			if got.Width != tc.want.Width || got.Height != tc.want.Height || got.FrameRate != tc.want.FrameRate || got.AudioCodec != tc.want.AudioCodec ||
				got.VideoCodec != "h264" || got.HDR || (got.Duration-from.Duration).Abs() > 150*time.Millisecond || last < 0.5 {
				t.Errorf("%s: got %+v of %+v, and progress %v", tc.reason, got, from, last)
			}
			if index, frames := bytes.Index(converted, []byte("moov")), bytes.Index(converted, []byte("mdat")); index < 0 || index > frames || bytes.Contains(converted, []byte("elst")) {
				t.Errorf("the index is at %d, and the frames at %d", index, frames)
			}
		})
	}
}

// A failed conversion reports its reason.
func TestConvertFails(t *testing.T) {
	program := videoConverter(t)
	lost := errors.New("the store is unavailable")
	for name, tc := range map[string]struct {
		reason string
		film   rendition.VideoSource
		says   string
		final  bool
		is     error
	}{
		"no film": {"a retry would fail as well", transcodeVideo([]byte("no film")), "cannot be decoded", true, nil},
		"8K":      {"a frame needs more memory than a conversion may use", transcodeVideo(sampleTranscode(t, "testdata/frames.mp4")), "takes more memory", true, nil},
		"no store": {"the file is not at fault", rendition.VideoSource{Size: 1 << 20, Open: func(context.Context, int64, int64) (io.ReadCloser, error) {
			return nil, lost
		}}, "", false, lost},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := os.CreateTemp(t.TempDir(), "converted")
			must.Succeed(t, err)
			err = program.Convert(t.Context(), tc.film, &rendition.Conversion{Source: rendition.TranscodeSource{Duration: time.Second}, Target: rendition.Profile{Width: 1920, Height: 960, BitRate: 12_000_000}}, output, func(float64) {})
			problem := new(rendition.TranscodeError)
			switch {
			case tc.is != nil && !errors.Is(err, tc.is),
				tc.is == nil && (!errors.As(err, &problem) || problem.Final != tc.final || !strings.Contains(problem.Message, tc.says)):
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
