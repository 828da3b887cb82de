// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/isolate"
)

// FrameExtractor runs ffmpeg in a separate process; see FFmpegRun.
type FrameExtractor struct {
	// Path is the path of ffmpeg.
	Path string
	// Timeout is the timeout for one run. It defaults to one minute.
	Timeout time.Duration
}

// runTime is the default timeout for a run, which reads a few megabytes and decodes from the preceding key frame.
const runTime = time.Minute

// maxPicture is the maximum size of a picture in bytes. It has been YouTube's limit for years, and is ten times the
// usual size.
const maxPicture = 2 << 20

// ThumbnailChild makes this program call DecodeThumbnail. It is followed by the path and arguments of ffmpeg.
var ThumbnailChild = []string{"decode", "video"}

// MaxThumbnailData limits the writable memory of one process, in bytes. Decoding 10-bit 4K HEVC takes 240 MiB; a small
// file can request any number of large frames.
const MaxThumbnailData = 320 << 20

// thumbnailLimits confine the process. ffmpeg's libraries take about 300 MiB of address space in addition to its data.
var thumbnailLimits = isolate.Limits{Data: MaxThumbnailData, AddressSpace: 1 << 30, CPU: 45 * time.Second, Files: 64}

// DecodeThumbnail is the process's main function. It confines the process and becomes ffmpeg, or returns an exit code.
func DecodeThumbnail(args []string) int { return execFFmpeg(thumbnailLimits, args) }

// maxWidth and maxHeight are YouTube's recommendation for thumbnails, in pixels. Pictures are only scaled down.
const maxWidth, maxHeight = 1280, 720

// Picture is a JPEG.
type Picture struct {
	Data          []byte
	Width, Height int
}

// ExtractError is the reason there is no picture.
type ExtractError struct {
	// Message is the reason, phrased to follow "because".
	Message string
	// Final means that a retry would fail in the same way.
	Final bool
	// Err is the cause, for logs. It may be nil.
	Err error
}

func (p *ExtractError) Error() string { return p.Message }
func (p *ExtractError) Unwrap() error { return p.Err }

func arguments(address string, at time.Duration) []string {
	return []string{
		"-nostdin", "-hide_banner", "-loglevel", "error",
		// The input is the verified video, MP4 or QuickTime, not a format that refers to other files, such as playlists.
		"-protocol_whitelist", "http,tcp", "-f", "mov",
		// A single thread holds the fewest frames in memory.
		"-threads", "1", "-filter_threads", "1",
		// Decoding starts at the key frame before the requested time. The frames in between have negative times.
		"-noaccurate_seek", "-ss", strconv.FormatFloat(at.Seconds(), 'f', 3, 64), "-i", address,
		// Only the first video stream that is not a cover picture.
		"-map", "0:V:0",
		// The last frame is repeated forever, so it is shown for times after the end. ffmpeg applies a video's rotation.
		"-vf", "tpad=stop=-1:stop_mode=clone,select='gte(t,0)'," + scale(),
		"-frames:v", "1", "-map_metadata", "-1",
		"-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-q:v", "3", "-f", "mjpeg", "pipe:1",
	}
}

// scale returns the filter that fits a picture as it is displayed: in television formats pixels are not square, but
// wider or taller (the variable sar).
func scale() string {
	factor := fmt.Sprintf("min(1,min(%d/(iw*sar),%d/ih))", maxWidth, maxHeight)
	return fmt.Sprintf("scale=w='max(1,round(iw*sar*%s))':h='max(1,round(ih*%s))',setsar=1", factor, factor)
}

// Extract returns the picture at the given time in a video: the first frame at or after that time, or the last frame if
// there is none. The error is an *ExtractError, or comes from reading the video.
func (f FrameExtractor) Extract(ctx context.Context, video VideoSource, at time.Duration) (Picture, error) {
	timeout := f.Timeout
	if timeout == 0 {
		timeout = runTime
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := isolate.NewOutput(maxPicture, cancel)
	run := FFmpegRun{
		Path: f.Path, Child: ThumbnailChild, Limits: thumbnailLimits, Stdout: out,
		Arguments: func(address string) []string { return arguments(address, at) },
	}
	output, err := run.Do(ctx, video)
	if out.Truncated() {
		return Picture{}, &ExtractError{Message: "the picture is too large", Final: true}
	}
	if err != nil {
		return Picture{}, thumbnailProblemOf(ctx, err, timeout)
	}
	header, err := jpeg.DecodeConfig(bytes.NewReader(out.Bytes()))
	if err != nil {
		return Picture{}, &ExtractError{Message: "ffmpeg found no picture in it", Final: true, Err: fmt.Errorf("not a JPEG: %w: %s", err, output)}
	}
	return Picture{Data: out.Bytes(), Width: header.Width, Height: header.Height}, nil
}

func thumbnailProblemOf(ctx context.Context, err error, timeout time.Duration) error {
	failed := new(FFmpegExitError)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return &ExtractError{Message: fmt.Sprintf("ffmpeg did not finish within %s", timeout), Err: err}
	case errors.As(err, &failed):
		return &ExtractError{Message: "ffmpeg found no picture in it", Final: true, Err: err}
	case errors.Is(err, isolate.ErrNotIsolated):
		return &ExtractError{Message: "ffmpeg cannot be sandboxed on this system, so it is not run; see docs/media-processing.md", Err: err}
	case errors.Is(err, ErrFFmpegNotStarted):
		return &ExtractError{Message: "ffmpeg cannot be started; see thumbnails.ffmpeg of the manager's configuration", Err: err}
	case errors.Is(err, ErrKilled):
		return &ExtractError{Message: "memory was short", Err: err}
	default:
		return err
	}
}
