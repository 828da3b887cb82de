// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"io"
	"os"
)

// spool takes a body in, into a file, and puts what arrived in its place, with the error that ended it if it
// did not arrive whole. Call what it returns when the request is over.
func spool(req *Request) (forget func(), err error) {
	file, err := os.CreateTemp("", "herald-sandbox-*")
	if err != nil {
		return nil, err
	}
	// Where a file may go while it is open, nothing is left behind however the process ends; elsewhere it goes in the end.
	_ = os.Remove(file.Name())
	_, broken := io.Copy(file, req.Body)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// The gate goes on looking after the body itself.
	arrived := *req.Request
	arrived.Body = spooled{Reader: file, broken: broken}
	req.Request = &arrived
	return func() { _, _ = file.Close(), os.Remove(file.Name()) }, nil // it is not read any more
}

// spooled is a body that has been taken in.
type spooled struct {
	io.Reader
	broken error
}

// Read returns, at the end, what ended the body.
func (s spooled) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if errors.Is(err, io.EOF) && s.broken != nil {
		err = s.broken
	}
	return n, err
}

// Close does nothing: the file is closed when the request is over.
func (spooled) Close() error { return nil }
