// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"
)

// ReaderAt returns a reader for the file with the given size and etag. Reads fail with ErrChanged if the file's etag
// has changed, and with ErrNotFound if it is gone. Each call makes one request, so add a buffer to read many small
// parts. The context applies to all reads.
func (s *Store) ReaderAt(ctx context.Context, key, etag string, size int64) io.ReaderAt {
	return ReaderAt(ctx, s.Open, key, etag, size)
}

// Open is the type of Store.Open, for callers that do not need any other method of a Store.
type Open func(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error)

// ReaderAt is like Store.ReaderAt, for a file that open reads.
func ReaderAt(ctx context.Context, open Open, key, etag string, size int64) io.ReaderAt {
	return &readerAt{open: open, ctx: ctx, key: key, etag: etag, size: size}
}

// Open streams length bytes of the file with the given etag, starting at offset. It fails with ErrChanged if the file
// has a different etag, and with ErrNotFound if it is gone. It makes one request, which is aborted when ctx is done.
func (s *Store) Open(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error) {
	if length <= 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	var options minio.GetObjectOptions
	if err := options.SetRange(offset, offset+length-1); err != nil {
		return nil, fmt.Errorf("cannot ask for a part of the file: %w", err)
	}
	if err := options.SetMatchETag(etag); err != nil {
		return nil, fmt.Errorf("cannot ask for the file of etag %q: %w", etag, err)
	}
	body, _, _, err := s.core.GetObject(ctx, s.bucket, key, options)
	if err != nil {
		return nil, explain("cannot read the file in the store", err)
	}
	return body, nil
}

type readerAt struct {
	open Open
	ctx  context.Context //nolint:containedctx // io.ReaderAt has no context parameter
	key  string
	etag string
	size int64
}

// ReadAt implements io.ReaderAt.
func (r *readerAt) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("cannot read before the start of a file, at %d", off)
	}
	if off >= r.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	want := p[:min(int64(len(p)), r.size-off)]
	body, err := r.open(r.ctx, r.key, r.etag, off, int64(len(want)))
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }() // Close errors do not affect the data read.
	n, err := io.ReadFull(body, want)
	if err != nil {
		return n, fmt.Errorf("cannot read the file in the store: %w", err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
