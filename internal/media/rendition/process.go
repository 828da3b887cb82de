// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/herald-social/herald/internal/isolate"
)

// Child are the arguments that make this program call Decode.
var Child = []string{"decode", "image"}

const (
	// maxBytes limits a rendition whose target has no limit.
	maxBytes = 32 << 20
	// maxStderr limits the stored output of a crashing process.
	maxStderr = 4 << 10
)

// run does a job on a file in a separate process. The error is a *ConversionError if the file is at fault, an
// *ExhaustedError if it exceeds the limits, and otherwise comes from reading the file, the context or the system.
func run(ctx context.Context, j job, open func() (io.ReadCloser, error)) (Output, error) {
	whole := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	file, err := open()
	if err != nil {
		return Output{}, err
	}
	input := &trackedReader{from: file, stop: cancel}
	bound := j.Target.MaxBytes
	if bound <= 0 {
		bound = maxBytes
	}
	most := int(4 + longestAnswer + bound)
	output := isolate.NewOutput(most, cancel)
	stderr := isolate.NewOutput(maxStderr, nil)
	cmd := isolate.Self(ctx, Child...)
	var head bytes.Buffer
	if err := writeMessage(&head, &j); err != nil {
		return Output{}, errors.Join(err, file.Close())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.MultiReader(&head, input), output, stderr
	err = start(cmd)
	_ = file.Close() // Close errors do not affect the data read.
	switch cause := input.failure(); {
	case cause != nil:
		return Output{}, fmt.Errorf("cannot read the image: %w", cause)
	case output.Truncated():
		return Output{}, damaged(fmt.Errorf("the decoder gave more than %d bytes", most))
	case errors.Is(whole.Err(), context.DeadlineExceeded) && spent(cmd) >= muchTime:
		return Output{}, fmt.Errorf("%w: %w", ErrSlow, whole.Err())
	case whole.Err() != nil:
		return Output{}, fmt.Errorf("the conversion was ended: %w", whole.Err())
	case cmd.ProcessState == nil:
		return Output{}, fmt.Errorf("cannot start a process that converts the image: %w", err)
	}
	if err := isolate.StartError(cmd.ProcessState, stderr.String()); err != nil {
		return Output{}, fmt.Errorf("cannot convert an image: %w", err)
	}
	if problem := exitError(cmd, stderr.String()); problem != nil {
		return Output{}, problem
	}
	return j.validate(output.Bytes())
}

func start(cmd *exec.Cmd) error {
	// The kernel kills the process when the thread that started it exits.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}

func exitError(cmd *exec.Cmd, stderr string) error {
	cause := fmt.Errorf("%s: %.*s", cmd.ProcessState, longestCause, stderr)
	how := isolate.ClassifyExit(cmd.ProcessState, stderr, limits)
	switch {
	case how == isolate.Exited && cmd.ProcessState.Success():
		return nil
	case how == isolate.Forbidden, how == isolate.Crashed:
		return &ExhaustedError{Of: ResourceCrash, Err: cause}
	}
	if err := LimitError(how, cause); err != nil {
		return err
	}
	return damaged(cause)
}

// LimitError returns the error for a process that was killed for its use of resources: an *ExhaustedError, or ErrKilled
// if the system killed it for lack of memory. It returns nil for any other exit.
func LimitError(how isolate.ExitReason, cause error) error {
	switch how {
	case isolate.OutOfTime:
		return &ExhaustedError{Of: ResourceTime, Err: cause}
	case isolate.OutOfMemory:
		return &ExhaustedError{Of: ResourceMemory, Err: cause}
	case isolate.Killed:
		return fmt.Errorf("%w: %w", ErrKilled, cause)
	case isolate.Forbidden, isolate.Crashed, isolate.Exited:
	}
	return nil
}

// validate parses an answer, and checks everything in it that can be checked.
func (j *job) validate(output []byte) (Output, error) {
	r := bytes.NewReader(output)
	var a answer
	if err := readMessage(r, longestAnswer, &a); err != nil {
		return Output{}, damaged(err)
	}
	switch a.Outcome {
	case outcomeMade:
	case outcomeScans:
		return Output{}, problemf("is built up in more than %d passes over the picture (scans), which no camera does; export it again, as a plain JPEG, and upload that", maxScans)
	case outcomeTooLong:
		return Output{}, problemf("cannot be made small enough for the platform (%d bytes); upload a smaller picture", j.Target.MaxBytes)
	case outcomeInks:
		return Output{}, problemf("is a CMYK picture with an invalid profile for print, so that its colours would change; export it as sRGB and upload that")
	case outcomeDamaged:
		return Output{}, damaged(fmt.Errorf("%w: %.*s", errDecoded, longestCause, a.Cause))
	default:
		return Output{}, damaged(fmt.Errorf("unknown answer %.40q", a.Outcome))
	}
	result := Output{Data: output[len(output)-r.Len():], MIMEType: a.MIMEType, Width: a.Width, Height: a.Height, Blank: a.Blank}
	config, format, err := image.DecodeConfig(bytes.NewReader(result.Data))
	l := j.layout()
	switch {
	case err != nil:
		return Output{}, damaged(fmt.Errorf("the rendition: %w", err))
	case a.MIMEType != jpegType && a.MIMEType != pngType, "image/"+format != a.MIMEType, !j.Target.allows(a.MIMEType):
		return Output{}, damaged(fmt.Errorf("the rendition is %s, but was reported as %.40q", format, a.MIMEType))
	case config.Width != a.Width, config.Height != a.Height, a.Width > l.canvasWidth, a.Height > l.canvasHeight:
		return Output{}, damaged(fmt.Errorf("the rendition has %d × %d pixels, but was reported as %d × %d", config.Width, config.Height, a.Width, a.Height))
	case j.Target.MaxBytes > 0 && int64(len(result.Data)) > j.Target.MaxBytes:
		return Output{}, damaged(fmt.Errorf("the rendition has %d bytes", len(result.Data)))
	}
	return result, nil
}

// errDecoded is returned for an image whose pixels the decoder rejects.
var errDecoded = errors.New("the image cannot be decoded")

// ErrSlow is returned for a conversion that timed out after taking more CPU time than a photo needs. The machine
// or the file may be at fault, so it may be retried a few times.
var ErrSlow = errors.New("the conversion did not end in time")

// ErrKilled is returned for work whose process was killed because the machine or the container ran out of memory. The
// file or any other process may be at fault, so it may be retried a few times.
var ErrKilled = errors.New("the system killed the process, probably for lack of memory")

// muchTime is several times the time that a photo takes.
const muchTime = maxTime / 4

func spent(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// trackedReader reads a file. If a read fails, it stores the error and stops the consumer.
type trackedReader struct {
	from io.Reader
	stop func()
	err  atomic.Pointer[error]
}

func (w *trackedReader) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err.Store(&err)
		w.stop()
	}
	return n, err
}

func (w *trackedReader) failure() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}
