// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"io"
	"os"
)

// spool copies the body to a temporary file and replaces it with a reader of the file. The reader ends with the original read error if the
// body was incomplete. Call forget at the end of the request.
func spool(req *Request) (forget func(), err error) {
	file, err := os.CreateTemp("", "herald-sandbox-*")
	if err != nil {
		return nil, err
	}
	// Where an open file can be removed, no file remains after the process exits; elsewhere forget removes it.
	_ = os.Remove(file.Name())
	_, broken := io.Copy(file, req.Body)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// The gate still drains the original body.
	arrived := *req.Request
	arrived.Body = spooled{Reader: file, broken: broken}
	req.Request = &arrived
	return func() { _, _ = file.Close(), os.Remove(file.Name()) }, nil // the file is no longer read
}

// spooled is a body in a temporary file.
type spooled struct {
	io.Reader
	broken error
}

// Read returns the original body's error, if any, in place of io.EOF.
func (s spooled) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if errors.Is(err, io.EOF) && s.broken != nil {
		err = s.broken
	}
	return n, err
}

// Close does nothing: forget closes the file at the end of the request.
func (spooled) Close() error { return nil }
