// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/herald-social/herald/internal/isolate"
)

// FFmpegRun is one run of ffmpeg on a video in the store, in a separate process: see package isolate. That process has
// no environment. Once it starts to read the video, it opens no file except its output, and it reads the video from
// sockets whose other ends are in this process. It runs only on Linux.
type FFmpegRun struct {
	// Path is the path of ffmpeg.
	Path string
	// Child are the arguments that make this program apply Limits and execute another program, whose path follows them.
	Child  []string
	Limits isolate.Limits
	// Arguments returns ffmpeg's arguments, given the video's address.
	Arguments func(address string) []string
	// Output is the file that ffmpeg writes, or nil if there is none. Stdout receives its standard output.
	Output *os.File
	Stdout io.Writer
}

const maxFFmpegStderr = 2 << 10

// ErrFFmpegNotStarted is returned if the program cannot be started.
var ErrFFmpegNotStarted = errors.New("cannot start ffmpeg")

// FFmpegExitError is returned when ffmpeg itself reports an error.
type FFmpegExitError struct {
	// Stderr is its standard error.
	Stderr string
	Err    error
}

func (f *FFmpegExitError) Error() string { return fmt.Sprintf("ffmpeg: %v: %s", f.Err, f.Stderr) }
func (f *FFmpegExitError) Unwrap() error { return f.Err }

// execFFmpeg is the main function of the separate process. It confines the process and becomes the program in the
// arguments. If that fails, it returns an exit code.
func execFFmpeg(limits isolate.Limits, args []string) int {
	if len(args) == 0 {
		return isolate.ExitNotStarted
	}
	code, err := isolate.Exec(limits, args[0], args[1:])
	fmt.Fprintln(os.Stderr, err)
	return code
}

// Do runs ffmpeg on a video until it exits. The error comes from reading the video or from the context; it is
// ErrFFmpegNotStarted or isolate.ErrNotIsolated if the program did not run, one from LimitError if it exceeded its
// limits, and otherwise an *FFmpegExitError.
func (r *FFmpegRun) Do(ctx context.Context, video VideoSource) (output string, err error) {
	source := newServedVideo(ctx, video)
	defer source.close()
	stderr := isolate.NewOutput(maxFFmpegStderr, nil)
	err = r.run(ctx, source, stderr)
	source.close()
	output = strings.ReplaceAll(strings.TrimSpace(stderr.String()), source.address, "the video")
	if failure := source.failure(); failure != nil {
		return output, failure
	}
	if ctx.Err() != nil {
		return output, ctx.Err()
	}
	if failed, ok := errors.AsType[*FFmpegExitError](err); ok {
		failed.Stderr = output
	}
	return output, err
}

func (r *FFmpegRun) run(ctx context.Context, source *servedVideo, stderr *isolate.Output) error {
	// The kernel kills the child when the thread that started it exits.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := isolate.Self(ctx, slices.Concat(r.Child, []string{r.Path}, r.Arguments(source.address))...)
	cmd.Stdout, cmd.Stderr = r.Stdout, stderr
	program, err := isolate.Start(cmd, r.Limits, r.Output)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFFmpegNotStarted, err)
	}
	source.serve(program)
	err = program.Wait()
	output := stderr.String()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		return err
	}
	switch failure := isolate.StartError(cmd.ProcessState, output); {
	case errors.Is(failure, isolate.ErrNotIsolated):
		return failure
	case failure != nil:
		return fmt.Errorf("%w: %w", ErrFFmpegNotStarted, failure)
	}
	if limitErr := LimitError(isolate.ClassifyExit(cmd.ProcessState, output, r.Limits), err); limitErr != nil {
		return limitErr
	}
	if err != nil {
		return &FFmpegExitError{Err: err}
	}
	return nil
}
