// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Rewriting says how a file is rewritten.
type Rewriting struct {
	// Name names what becomes of the file: the same way of rewriting has the same name.
	Name string
	// MIMEType and Size are those of the file, and of what becomes of it.
	MIMEType string
	Size     int64
	// Through changes the bytes while they are read, and not how many they are.
	Through func(io.ReadCloser) io.ReadCloser
}

// Rewritten returns a key under which the bytes with this etag lie as they are rewritten. They
// pass through this process once, and it holds none of them; what was made is deleted with
// the file (see DeleteAll). The error is ErrChanged if the file has another etag by now, and
// ErrNotFound if it is gone.
func (s *Store) Rewritten(ctx context.Context, key, etag string, how Rewriting) (string, error) {
	to := Derived(key, Digest(how.Name+"\n"+etag))
	if s.isVerified(to, etag) {
		return to, nil
	}
	made := s.copying.DoChan(to, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), TimeoutFor(how.Size))
		defer cancel()
		return nil, s.ensureRewritten(ctx, key, etag, to, how)
	})
	select {
	case result := <-made:
		return to, result.Err
	case <-ctx.Done():
		return "", fmt.Errorf("the file was not rewritten in the store in time: %w", ctx.Err())
	}
}

// ensureRewritten rewrites a file unless that is done. What was stored is there as a whole, and
// its name says of which bytes.
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
		defer func() { _ = body.Close() }() // What was read was read.
		if _, err := s.Put(ctx, to, how.MIMEType, how.Size, body); err != nil {
			return err
		}
	}
	s.recordVerified(to, etag)
	return nil
}
