// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/herald-social/herald/internal/isolate"
)

// An image is converted in a separate process: see package isolate. Its standard input is a job, as JSON preceded by
// its length in four bytes, and then the file. Its standard output is an answer in that form, and then the rendition.

type job struct {
	MIMEType string
	// Width, Height, Orientation and Profile come from the header, which the manager has read and validated.
	Width, Height, Orientation int
	Profile                    []byte
	// Inks is the profile for the colors of a CMYK picture, or nil if it has none.
	Inks []byte
	// Gamma is probe.Header.Gamma.
	Gamma  float64
	Target Target
	// Mend means that a JPEG's pixels are damaged and only its intact part is converted.
	Mend bool

	// room is the memory that the conversion leaves free, in bytes.
	room int64
}

// outcome is the result of a conversion.
type outcome string

const (
	// outcomeMade precedes a rendition.
	outcomeMade outcome = "made"
	// outcomeDamaged means that the file is invalid, outcomeScans that it has too many scans, and outcomeTooLong that the
	// size limit cannot be met. outcomeInks means that a printing profile is invalid.
	outcomeDamaged outcome = "damaged"
	outcomeInks    outcome = "inks"
	outcomeScans   outcome = "scans"
	outcomeTooLong outcome = "too long"
)

// answer is the result that the process reports. Every field is validated: a malicious file may have taken over the
// process.
type answer struct {
	Outcome       outcome
	MIMEType      string `json:",omitempty"`
	Width, Height int    `json:",omitempty"`
	Blank         bool   `json:",omitempty"`
	// Cause is for logs.
	Cause string `json:",omitempty"`
}

const (
	// longestJob leaves room for a color profile in base64.
	longestJob = 6 << 20
	// longestAnswer limits an answer without the rendition, and longestCause limits its text for logs.
	longestAnswer = 4 << 10
	longestCause  = 500
)

func writeMessage(w io.Writer, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)) //nolint:gosec // a profile has some megabytes at most
	return err
}

// readMessage reads a job or an answer of at most longest bytes.
func readMessage(r io.Reader, longest uint32, message any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("cannot read a message: %w", err)
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > longest {
		return fmt.Errorf("a message of %d bytes is too long", length)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); err != nil {
		return fmt.Errorf("cannot read a message of %d bytes: %w", length, err)
	}
	if err := json.Unmarshal(data, message); err != nil {
		return fmt.Errorf("cannot read a message: %w", err)
	}
	return nil
}

// limits are the limits of the process. A photo takes only a fraction of the time.
var limits = isolate.Limits{Data: maxData, CPU: maxTime, Files: 16}

const (
	// maxData is maxMemory as Go allocates it: in steps of 64 MiB, a picture in one piece, plus the runtime's
	// bookkeeping.
	maxData = 448 << 20
	maxTime = 20 * time.Second
)

// Decode is the main function of the process. It confines the process, converts one image and returns the exit code.
func Decode() int {
	runtime.GOMAXPROCS(1)
	// Pictures are few and large, so free memory is collected before more is requested.
	debug.SetMemoryLimit(maxMemory)
	debug.SetGCPercent(collectAt)
	if err := isolate.Enter(limits); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return isolate.ExitNotIsolated
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const collectAt = 25

func serve(in io.Reader, out io.Writer) error {
	var j job
	if err := readMessage(in, longestJob, &j); err != nil {
		return err
	}
	output, err := j.convert(in)
	a := answer{Outcome: outcomeMade, MIMEType: output.MIMEType, Width: output.Width, Height: output.Height, Blank: output.Blank}
	if err != nil {
		a = answer{Outcome: outcomeDamaged}
		switch {
		case errors.Is(err, errScans):
			a.Outcome = outcomeScans
		case errors.Is(err, errSmall):
			a.Outcome = outcomeTooLong
		case errors.Is(err, errInks):
			a.Outcome = outcomeInks
		}
		a.Cause = err.Error()
		a.Cause = a.Cause[:min(len(a.Cause), longestCause)]
	}
	w := bufio.NewWriter(out)
	if err := writeMessage(w, a); err != nil {
		return err
	}
	if _, err := w.Write(output.Data); err != nil {
		return err
	}
	return w.Flush()
}
