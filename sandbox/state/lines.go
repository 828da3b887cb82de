// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"errors"
	"io"
)

// lineReader reads lines of any length.
type lineReader struct{ in *bufio.Reader }

func newLineReader(r io.Reader) *lineReader { return &lineReader{in: bufio.NewReaderSize(r, 1<<16)} }

// next returns the next line with its newline. whole is false for what stands after the last newline, which may be
// nothing; no line follows it.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	line, err = l.in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return line, false, nil
	}
	return line, err == nil, err
}
