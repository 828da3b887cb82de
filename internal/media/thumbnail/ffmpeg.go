// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package thumbnail extracts a picture from a video in the store, and keeps it there
// beside the video. ffmpeg decodes the video; an installation may lack it.
package thumbnail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/confine"
	"github.com/herald-social/herald/internal/media/rendition"
)

// FFmpeg runs the program in a process apart: see package confine. That process has no
// environment, opens no file once it reads of the video, and reads that by sockets which
// it is given and whose other ends are in this process. It runs on Linux only.
type FFmpeg struct {
	// Path is the path of the program.
	Path string
	// Timeout bounds one run; one minute if zero.
	Timeout time.Duration
}

// runTime is how long a run may take: it reads some megabytes around the moment,
// and decodes from the last key frame on.
const runTime = time.Minute

const (
	// maxPicture is how large a picture may be: YouTube took 2 MB for years.
	// At its quality and size one has a tenth of that.
	maxPicture = 2 << 20
	// maxComplaint bounds what is kept of what ffmpeg says.
	maxComplaint = 2 << 10
)

// Child are the arguments with which this program calls Decode, before the path of ffmpeg
// and its arguments.
var Child = []string{"decode", "video"}

// MostData bounds what one process writes to in memory, in bytes. Decoding 4K HEVC with ten
// bits takes 240 MiB; a small file can ask for any number of large frames.
const MostData = 320 << 20

// limits are those of the process. The libraries of ffmpeg have some 300 MiB of addresses,
// beside its data.
var limits = confine.Limits{Data: MostData, AddressSpace: 1 << 30, CPU: 45 * time.Second, Files: 64}

// Decode is what the process does: it confines itself and becomes ffmpeg. If that fails it
// returns an exit code.
func Decode(args []string) int {
	if len(args) == 0 {
		return confine.ExitNotStarted
	}
	code, err := confine.Exec(limits, args[0], args[1:])
	fmt.Fprintln(os.Stderr, err)
	return code
}

// maxWidth and maxHeight are what YouTube recommends for thumbnails, in pixels.
// A picture is scaled down to fit, never up.
const maxWidth, maxHeight = 1280, 720

// Picture is a JPEG.
type Picture struct {
	Data          []byte
	Width, Height int
}

// Problem is why there is no picture.
type Problem struct {
	// Message says why, and continues "because".
	Message string
	// Final says that another try would fail in the same way.
	Final bool
	// Err is the cause, for logs; may be nil.
	Err error
}

func (p *Problem) Error() string { return p.Message }
func (p *Problem) Unwrap() error { return p.Err }

// arguments returns those of ffmpeg, for a video at an address.
func arguments(address string, at time.Duration) []string {
	return []string{
		"-nostdin", "-hide_banner", "-loglevel", "error",
		// The video is what was verified, MP4 or QuickTime, and nothing that
		// refers to other addresses or files, such as a playlist.
		"-protocol_whitelist", "http,tcp", "-f", "mov",
		// One thread holds the fewest frames in memory.
		"-threads", "1", "-filter_threads", "1",
		// Decoding begins at the key frame before the moment. The frames in
		// between are passed on with times below zero.
		"-noaccurate_seek", "-ss", strconv.FormatFloat(at.Seconds(), 'f', 3, 64), "-i", address,
		// The first stream of video that is no cover picture, and nothing else.
		"-map", "0:V:0",
		// The last frame is repeated for ever, so that it is the picture of
		// every moment beyond the end. A film is turned as it says by ffmpeg.
		"-vf", fmt.Sprintf("tpad=stop=-1:stop_mode=clone,select='gte(t,0)',scale=w='min(%d,iw)':h='min(%d,ih)':force_original_aspect_ratio=decrease",
			maxWidth, maxHeight),
		"-frames:v", "1", "-map_metadata", "-1",
		"-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-q:v", "3", "-f", "mjpeg", "pipe:1",
	}
}

// Take returns the picture at a moment of a video: the first frame from there on,
// or the last frame if there is none. The error is a *Problem, or why the video
// could not be read.
func (f FFmpeg) Take(ctx context.Context, video Video, at time.Duration) (Picture, error) {
	timeout := f.Timeout
	if timeout == 0 {
		timeout = runTime
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	source := offer(ctx, video)
	defer source.close()

	out, complaint := confine.NewOutput(maxPicture, cancel), confine.NewOutput(maxComplaint, nil)
	err := f.run(ctx, source, at, out, complaint)
	source.close()
	switch {
	case source.failure() != nil:
		return Picture{}, source.failure()
	case out.Over():
		return Picture{}, &Problem{Message: "the picture is too large", Final: true}
	case ctx.Err() != nil:
		return Picture{}, &Problem{Message: fmt.Sprintf("ffmpeg did not end within %s", timeout), Err: ctx.Err()}
	}
	if problem, ok := errors.AsType[*Problem](err); ok {
		return Picture{}, problem
	}
	if exhausted, ok := errors.AsType[*rendition.Exhausted](err); ok {
		return Picture{}, exhausted
	}
	said := fmt.Errorf("ffmpeg: %w: %s", err, strings.ReplaceAll(strings.TrimSpace(complaint.String()), source.address, "the video"))
	if err != nil {
		return Picture{}, &Problem{Message: "ffmpeg finds no picture in it", Final: true, Err: said}
	}
	header, err := jpeg.DecodeConfig(bytes.NewReader(out.Bytes()))
	if err != nil {
		return Picture{}, &Problem{Message: "ffmpeg finds no picture in it", Final: true, Err: fmt.Errorf("not a JPEG: %w: %w", err, said)}
	}
	return Picture{Data: out.Bytes(), Width: header.Width, Height: header.Height}, nil
}

func notStarted(err error) *Problem {
	return &Problem{Message: "ffmpeg cannot be started; see thumbnails.ffmpeg of the manager's configuration", Err: fmt.Errorf("cannot start ffmpeg: %w", err)}
}

// run runs the program to its end.
func (f FFmpeg) run(ctx context.Context, source *source, at time.Duration, out, complaint *confine.Output) error {
	// The system ends the child with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := confine.Self(ctx, slices.Concat(Child, []string{f.Path}, arguments(source.address, at))...)
	cmd.Stdout, cmd.Stderr = out, complaint
	program, err := confine.Start(cmd, limits)
	if err != nil {
		return notStarted(err)
	}
	source.serve(program)
	err = program.Wait()
	said := complaint.String()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		return err
	}
	switch failure := confine.Failed(cmd.ProcessState, said); {
	case errors.Is(failure, confine.ErrUnconfined):
		return &Problem{Message: "ffmpeg cannot be confined on this system, and is not run without; see Thumbnails of videos in docs/media.md", Err: failure}
	case failure != nil:
		return notStarted(failure)
	}
	ranOut := rendition.RanOut(confine.EndingOf(cmd.ProcessState, said, limits), err)
	switch {
	case errors.Is(ranOut, rendition.ErrKilled):
		return &Problem{Message: "memory was short", Err: ranOut}
	case ranOut != nil:
		return ranOut
	}
	return err
}
