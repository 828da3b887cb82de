// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
)

// Sent counts file bytes that are sent to platforms; see prometheus.Counter.
type Sent interface{ Add(bytes float64) }

// Files gives access to the bytes of media files; see store.Store.
type Files interface {
	// Open reads a part of the file with the given key and ETag.
	Open(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error)
	// Verified returns a stable key for the file with the ETag: the same key, or a copy's if it may be overwritten.
	Verified(ctx context.Context, key, etag string, overwritable bool) (string, error)
	// Rewritten returns the key of a rewritten copy of the file with the given ETag.
	Rewritten(ctx context.Context, key, etag string, how store.Rewriting) (string, error)
	// PresignGet returns a URL for the file that is valid for the given time.
	PresignGet(ctx context.Context, key string, valid time.Duration) (string, error)
}

type stored struct {
	files     Files
	key, etag string
	// overwritable is set if the client may still overwrite the file.
	overwritable bool
	converts     bool
	mimeType     v1alpha1.MimeType
	size         int64
	privacy      *privacy
	sent         *sent
}

type sent struct {
	bytes atomic.Int64
	// all is the platform's counter, or nil if there is none.
	all Sent
}

type counted struct {
	io.ReadCloser
	sent *sent
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (n int, err error) {
	n, err = c.ReadCloser.Read(p)
	c.sent.bytes.Add(int64(n))
	if c.sent.all != nil {
		c.sent.all.Add(float64(n))
	}
	return n, err
}

func (s *sent) meter(body io.ReadCloser, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	return counted{body, s}, nil
}

// Open implements platforms.Bytes.
func (s stored) Open(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
	patches, err := s.privacy.patches(ctx, s)
	if err != nil {
		return nil, unlessChanged(err)
	}
	body, err := s.sent.meter(s.files.Open(ctx, s.key, s.etag, offset, length))
	if err != nil {
		return nil, unlessChanged(err)
	}
	return patches.Reader(body, offset), nil
}

// Address implements platforms.Bytes. The URL serves the verified content even if it is fetched later.
func (s stored) Address(ctx context.Context, valid time.Duration) (string, error) {
	key, err := s.verified(ctx)
	if err != nil {
		return "", err
	}
	return s.files.PresignGet(ctx, key, valid)
}

// verified returns the verified file's stable key, or the rewritten copy's if the location must be removed.
func (s stored) verified(ctx context.Context) (key string, err error) {
	patches, err := s.privacy.patches(ctx, s)
	switch {
	case err != nil:
	case patches.Empty():
		key, err = s.files.Verified(ctx, s.key, s.etag, s.overwritable)
	default:
		key, err = s.files.Rewritten(ctx, s.key, s.etag, store.Rewriting{
			Name: withoutPlace, MIMEType: string(s.mimeType), Size: s.size,
			Through: func(body io.ReadCloser) io.ReadCloser { return patches.Reader(body, 0) },
		})
	}
	return key, unlessChanged(err)
}

// unlessChanged marks an error as platforms.ErrFileChanged if the file is no longer the verified one.
func unlessChanged(err error) error {
	if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", platforms.ErrFileChanged, err)
	}
	return err
}

// bytes returns the source of a media file's bytes. A file that does not exist cannot be read.
func (p *Preparer) bytes(m *v1alpha1.Media, rule *privacy, s *sent) stored {
	if m == nil {
		return stored{files: p.o.Files, privacy: &privacy{}, sent: s}
	}
	return stored{
		files: p.o.Files, key: store.Key(m), etag: m.Status.ETag, overwritable: store.Overwritable(m),
		mimeType: m.Spec.MimeType, size: m.Status.SizeBytes, privacy: rule, sent: s,
	}
}
