// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ffmpeg runs the program ffmpeg on a video in the store, in a separate process: see package isolate. That
// process has no environment. After it starts to read the video it opens no file except its output, and it reads the
// video from sockets whose other ends are in this process. It runs on Linux only.
package ffmpeg

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
	"github.com/herald-social/herald/internal/media/rendition"
)

// Run is one run of the program.
type Run struct {
	// Path is the path of the program.
	Path string
	// Child are the arguments that make this program become another one within Limits. The path of the other program
	// follows them.
	Child  []string
	Limits isolate.Limits
	// Arguments returns the arguments of ffmpeg for a video at an address.
	Arguments func(address string) []string
	// Output is the file that ffmpeg writes; nil for none. Stdout receives its standard output.
	Output *os.File
	Stdout io.Writer
}

// maxComplaint limits the stored part of ffmpeg's standard error, in bytes.
const maxComplaint = 2 << 10

// ErrNotStarted is returned if the program cannot be started.
var ErrNotStarted = errors.New("cannot start ffmpeg")

// ExitError is returned when ffmpeg itself reports an error.
type ExitError struct {
	// Stderr is its standard error.
	Stderr string
	Err    error
}

func (f *ExitError) Error() string { return fmt.Sprintf("ffmpeg: %v: %s", f.Err, f.Stderr) }
func (f *ExitError) Unwrap() error { return f.Err }

// Exec is the main function of the separate process: it confines the process and becomes the program in the arguments.
// If that fails it returns an exit code.
func Exec(limits isolate.Limits, args []string) int {
	if len(args) == 0 {
		return isolate.ExitNotStarted
	}
	code, err := isolate.Exec(limits, args[0], args[1:])
	fmt.Fprintln(os.Stderr, err)
	return code
}

// Do runs the program on a video, to its end. The error is from reading the video, the context's, ErrNotStarted or
// isolate.ErrNotIsolated if the program did not run, one of rendition.LimitError if it exceeded its limits, and
// otherwise an *ExitError.
func (r *Run) Do(ctx context.Context, video Video) (said string, err error) {
	source := newSource(ctx, video)
	defer source.close()
	complaint := isolate.NewOutput(maxComplaint, nil)
	err = r.run(ctx, source, complaint)
	source.close()
	said = strings.ReplaceAll(strings.TrimSpace(complaint.String()), source.address, "the video")
	if failure := source.failure(); failure != nil {
		return said, failure
	}
	if ctx.Err() != nil {
		return said, ctx.Err()
	}
	if failed, ok := errors.AsType[*ExitError](err); ok {
		failed.Stderr = said
	}
	return said, err
}

func (r *Run) run(ctx context.Context, source *source, complaint *isolate.Output) error {
	// The kernel kills the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := isolate.Self(ctx, slices.Concat(r.Child, []string{r.Path}, r.Arguments(source.address))...)
	cmd.Stdout, cmd.Stderr = r.Stdout, complaint
	program, err := isolate.Start(cmd, r.Limits, r.Output)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	source.serve(program)
	err = program.Wait()
	said := complaint.String()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		return err
	}
	switch failure := isolate.StartError(cmd.ProcessState, said); {
	case errors.Is(failure, isolate.ErrNotIsolated):
		return failure
	case failure != nil:
		return fmt.Errorf("%w: %w", ErrNotStarted, failure)
	}
	if ranOut := rendition.LimitError(isolate.ClassifyExit(cmd.ProcessState, said, r.Limits), err); ranOut != nil {
		return ranOut
	}
	if err != nil {
		return &ExitError{Err: err}
	}
	return nil
}
