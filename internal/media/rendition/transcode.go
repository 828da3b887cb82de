// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/isolate"
)

// TranscodeChild makes this program call ExecTranscode. It is followed by the path and arguments of ffmpeg.
var TranscodeChild = []string{"decode", "film"}

// MaxTranscodeData limits the writable memory of one process, in bytes. Converting 10-bit 4K HEVC with a high dynamic
// range to 1080p takes 520 MiB, and 8K takes 1.3 GiB, which exceeds the limit.
const MaxTranscodeData = 640 << 20

var transcodeLimits = isolate.Limits{Data: MaxTranscodeData, AddressSpace: 2 << 30, CPU: transcodeMostTime, Files: 64, Output: v1alpha1.MaxVideoBytes}

const (
	// transcodeMostTime is the maximum CPU time of a conversion. An hour of 1080p takes about half an hour.
	transcodeMostTime = 2 * time.Hour
	// The timeout for a conversion is minTimeout plus slowest times the video's duration, but at most longest. It is
	// generous because other work may need the processor.
	minTimeout = 5 * time.Minute
	slowest    = 10
	longest    = 2 * time.Hour
)

// TranscodeTimeout returns the timeout for converting a video with the given duration.
func TranscodeTimeout(duration time.Duration) time.Duration {
	return min(minTimeout+slowest*duration, longest)
}

// ExecTranscode is the process's main function. It confines the process and becomes ffmpeg, or returns an exit code.
func ExecTranscode(args []string) int { return execFFmpeg(transcodeLimits, args) }

// FFmpegConverter runs ffmpeg in a separate process; see FFmpegRun.
type FFmpegConverter struct {
	// Path is the path of ffmpeg.
	Path string
	// Threads is the number of encoding threads, and defaults to two. Each takes memory.
	Threads int
}

// Conversion is a video to convert.
type Conversion struct {
	Source TranscodeSource
	Target Profile
	// HDR means that the video's colors exceed the range of ordinary screens.
	HDR bool
}

// TranscodeError is the reason a video cannot be converted.
type TranscodeError struct {
	// Message is phrased to follow "the file", and includes the remedy.
	Message string
	// Final means that a retry would fail in the same way.
	Final bool
	// Err is the cause, for logs. It may be nil.
	Err error
}

func (p *TranscodeError) Error() string { return p.Message }
func (p *TranscodeError) Unwrap() error { return p.Err }

func (c *Conversion) arguments(address string, threads int) []string {
	width, height := c.Target.Width, c.Target.Height
	filters := fmt.Sprintf("scale=%d:%d,setsar=1", width, height)
	if c.HDR {
		// The tone mapping is the one that ffmpeg recommends for screens of 100 candela.
		filters = fmt.Sprintf("zscale=w=%d:h=%d:t=linear:npl=100,format=gbrpf32le,zscale=p=bt709,tonemap=tonemap=hable:desat=0,zscale=t=bt709:m=bt709:r=tv,setsar=1",
			width, height)
	}
	if rate := c.Target.FrameRate; rate > 0 {
		filters = "fps=" + strconv.FormatFloat(rate, 'f', -1, 64) + "," + filters
	}
	bits, n := c.Target.BitRate, strconv.Itoa(threads)
	return []string{
		"-nostdin", "-hide_banner", "-loglevel", "error", "-y", "-progress", "pipe:1",
		// The input is the verified video, MP4 or QuickTime, not a format that refers to other files, such as playlists.
		"-protocol_whitelist", "http,tcp,file,pipe", "-f", "mov",
		// Each decoding thread holds full-size frames.
		"-threads", "1", "-filter_threads", "1", "-i", address,
		"-map", "0:V:0", "-map", "0:a:0?", "-map_metadata", "-1", "-map_chapters", "-1", "-fflags", "+bitexact",
		"-vf", filters, "-pix_fmt", "yuv420p",
		"-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-maxrate", strconv.FormatInt(bits, 10), "-bufsize", strconv.FormatInt(2*bits, 10),
		"-threads", n, "-profile:v", "high", "-g", "120",
		"-c:a", "aac", "-ac", "2", "-ar", "48000", "-b:a", "160k",
		"-movflags", "+faststart", "-use_editlist", "0", "-f", "mp4", "file:/converted.mp4",
	}
}

// Convert writes the converted video to a file. From time to time, it calls done with the share converted so far, from
// 0 to 1. The error is a *TranscodeError, or comes from reading the video.
func (f FFmpegConverter) Convert(ctx context.Context, video VideoSource, c *Conversion, output *os.File, done func(share float64)) error {
	within := TranscodeTimeout(c.Source.Duration)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	threads := f.Threads
	if threads == 0 {
		threads = 2
	}
	progress, writer := io.Pipe()
	progressed := make(chan struct{})
	go func() {
		defer close(progressed)
		readProgress(progress, c.Source.Duration, done)
	}()
	run := FFmpegRun{
		Path: f.Path, Child: TranscodeChild, Limits: transcodeLimits, Output: output, Stdout: writer,
		Arguments: func(address string) []string { return c.arguments(address, threads) },
	}
	_, err := run.Do(ctx, video)
	_ = writer.Close()
	<-progressed
	if err == nil {
		return nil
	}
	return transcodeProblemOf(ctx, err, within)
}

// readProgress reads ffmpeg's progress from its output. One of the lines has the position in the video that the
// conversion has reached, in microseconds.
func readProgress(from io.Reader, duration time.Duration, done func(share float64)) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		value, ok := strings.CutPrefix(lines.Text(), "out_time_us=")
		if us, err := strconv.ParseInt(value, 10, 64); ok && err == nil && us > 0 && duration > 0 {
			done(min(float64(time.Duration(us)*time.Microsecond)/float64(duration), 1))
		}
	}
	_, _ = io.Copy(io.Discard, from) // A line that is too long ends the scan, and must not block ffmpeg.
}

func tooMuch(err error) *TranscodeError {
	return &TranscodeError{Message: "exceeds the limits of a conversion; upload one that the platform accepts as it is", Final: true, Err: err}
}

func transcodeProblemOf(ctx context.Context, err error, within time.Duration) error {
	failed := new(FFmpegExitError)
	exhausted := new(ExhaustedError)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, ctx.Err()):
		return &TranscodeError{Message: fmt.Sprintf("could not be converted within %s; upload one that the platform accepts as it is", within), Err: err}
	case errors.As(err, &exhausted):
		return tooMuch(err)
	case errors.As(err, &failed) && (strings.Contains(failed.Stderr, "malloc of size") || strings.Contains(failed.Stderr, "Cannot allocate memory")):
		return &TranscodeError{Message: fmt.Sprintf("takes more memory to convert than the %d MiB that one video can use; upload one of at most 3840 × 2160 pixels", MaxTranscodeData>>20), Final: true, Err: err}
	case errors.As(err, &failed):
		return &TranscodeError{Message: "cannot be decoded by ffmpeg; export it again, as an MP4 with H.264, and upload that", Final: true, Err: err}
	case errors.Is(err, isolate.ErrNotIsolated):
		return &TranscodeError{Message: "cannot be converted: ffmpeg cannot be sandboxed on this system, so it is not run (docs/media-processing.md)", Err: err}
	case errors.Is(err, ErrFFmpegNotStarted):
		return &TranscodeError{Message: "cannot be converted: ffmpeg cannot be started; see thumbnails.ffmpeg of the manager's configuration", Err: err}
	case errors.Is(err, ErrKilled):
		return &TranscodeError{Message: "could not be converted: memory ran out", Err: err}
	default:
		return err
	}
}
