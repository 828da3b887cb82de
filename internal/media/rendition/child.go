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

// An image is converted by a process apart: see package confine. On its standard input
// that process gets a job, as JSON behind its length in four bytes, and then the file.
// On its standard output it gives an answer in the same form, and then the rendition.

// job is what the process is to do.
type job struct {
	MIMEType string
	// Width, Height, Orientation and Profile are those of the header, which the
	// manager has read and judged.
	Width, Height, Orientation int
	Profile                    []byte
	// Inks is the profile that the colours of a CMYK picture are converted by; nil if it
	// has none.
	Inks []byte
	// Gamma is probe.Header.Gamma.
	Gamma  float64
	Target Target
	// Mend says that the pixels of a JPEG are damaged, and are to be shown as far as they
	// are there.
	Mend bool

	// room is the memory that the conversion leaves.
	room int64
}

// outcome is how a conversion ended.
type outcome string

const (
	// outcomeMade precedes a rendition.
	outcomeMade outcome = "made"
	// outcomeDamaged says that the file makes no sense, outcomeScans that it is
	// built up in too many passes, and outcomeTooLong that the bound on the bytes
	// cannot be met. outcomeInks says that a profile for print makes no sense.
	outcomeDamaged outcome = "damaged"
	outcomeInks    outcome = "inks"
	outcomeScans   outcome = "scans"
	outcomeTooLong outcome = "too long"
)

// answer is what the process says. All of it is judged: a file may have taken the
// process over.
type answer struct {
	Outcome       outcome
	MIMEType      string `json:",omitempty"`
	Width, Height int    `json:",omitempty"`
	Blank         bool   `json:",omitempty"`
	// Cause is for logs.
	Cause string `json:",omitempty"`
}

const (
	// longestJob has room for a colour profile in base64.
	longestJob = 6 << 20
	// longestAnswer bounds an answer without the rendition, and longestCause what
	// is said for logs.
	longestAnswer = 4 << 10
	longestCause  = 500
)

// writeMessage writes a message in the form of jobs and answers.
func writeMessage(w io.Writer, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)) //nolint:gosec // a profile has some megabytes at most
	return err
}

// readMessage reads a message of so many bytes at most.
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

// limits are those of the process. Its time is many times that of a photo.
var limits = isolate.Limits{Data: mostData, CPU: mostTime, Files: 16}

const (
	// mostData is what maxMemory allows, as Go asks for it: in steps of 64 MiB, one
	// picture in one piece, and with what it needs to keep account.
	mostData = 448 << 20
	mostTime = 20 * time.Second
)

// Decode is what the process does: it confines itself and converts one image. The
// result is its exit code.
func Decode() int {
	runtime.GOMAXPROCS(1)
	// Pictures are few and large: what is not needed is given back before more is
	// asked for.
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

// collectAt is the percentage by which memory may grow before what is not needed is
// collected.
const collectAt = 25

// serve does one job.
func serve(in io.Reader, out io.Writer) error {
	var j job
	if err := readMessage(in, longestJob, &j); err != nil {
		return err
	}
	made, err := j.convert(in)
	a := answer{Outcome: outcomeMade, MIMEType: made.MIMEType, Width: made.Width, Height: made.Height, Blank: made.Blank}
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
	if _, err := w.Write(made.Data); err != nil {
		return err
	}
	return w.Flush()
}
