// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Rewriting describes how to rewrite a file.
type Rewriting struct {
	// Name identifies the method: the same name gives the same result.
	Name string
	// MIMEType and Size describe the file, before and after: neither changes.
	MIMEType string
	Size     int64
	// Through changes the bytes while they are read, but not their number.
	Through func(io.ReadCloser) io.ReadCloser
}

// Rewritten returns the key of a rewritten copy of the file with the given etag. The bytes pass through this process
// once and are not buffered. The copy is deleted together with the file (see DeleteAll). The error is ErrChanged if the
// file's etag has changed, and ErrNotFound if it is gone.
func (s *Store) Rewritten(ctx context.Context, key, etag string, how Rewriting) (string, error) {
	to := Derived(key, Digest(how.Name+"\n"+etag))
	if s.isVerified(to, etag) {
		return to, nil
	}
	copied := s.copying.DoChan(to, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), TimeoutFor(how.Size))
		defer cancel()
		return nil, s.ensureRewritten(ctx, key, etag, to, how)
	})
	select {
	case result := <-copied:
		return to, result.Err
	case <-ctx.Done():
		return "", fmt.Errorf("the file was not rewritten in the store in time: %w", ctx.Err())
	}
}

// ensureRewritten rewrites a file unless the result already exists. A stored result is complete, and its name
// identifies the bytes it was made from.
func (s *Store) ensureRewritten(ctx context.Context, key, etag, to string, how Rewriting) error {
	object, err := s.stat(ctx, to)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err != nil || object.Size != how.Size {
		body, err := s.Open(ctx, key, etag, 0, how.Size)
		if err != nil {
			return err
		}
		body = how.Through(body)
		defer func() { _ = body.Close() }() // Close errors do not affect the data read.
		if _, err := s.Put(ctx, to, how.MIMEType, how.Size, body); err != nil {
			return err
		}
	}
	s.recordVerified(to, etag)
	return nil
}
