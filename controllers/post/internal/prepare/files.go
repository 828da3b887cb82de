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

// Sent counts bytes of files on their way to platforms; see prometheus.Counter.
type Sent interface{ Add(bytes float64) }

// Files gives access to the bytes of media files; see store.Store.
type Files interface {
	// Open reads a part of the file under a key whose etag is this one.
	Open(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error)
	// Verified returns a key under which the file of this etag lies and stays: the
	// same one, or that of a copy where the file may still be overwritten.
	Verified(ctx context.Context, key, etag string, overwritable bool) (string, error)
	// Rewritten returns a key under which the file of this etag lies as it is rewritten.
	Rewritten(ctx context.Context, key, etag string, how store.Rewriting) (string, error)
	// PresignGet returns an address from which the file can be read for so long.
	PresignGet(ctx context.Context, key string, valid time.Duration) (string, error)
}

// stored is where the bytes of one file are.
type stored struct {
	files     Files
	key, etag string
	// overwritable says that its client may still overwrite it.
	overwritable bool
	// converts says that the team has its videos converted.
	converts bool
	mimeType v1alpha1.MimeType
	size     int64
	privacy  *privacy
	sent     *sent
}

// sent counts what is read of the files of one call or preparation.
type sent struct {
	bytes atomic.Int64
	// all counts for all of a platform; nil counts nothing.
	all Sent
}

// counted is a file whose bytes are counted as they are read.
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

// counting has what is read of a file counted.
func (s *sent) counting(body io.ReadCloser, err error) (io.ReadCloser, error) {
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
	body, err := s.sent.counting(s.files.Open(ctx, s.key, s.etag, offset, length))
	if err != nil {
		return nil, unlessChanged(err)
	}
	return patches.Reader(body, offset), nil
}

// Address implements platforms.Bytes. What fetches the file later gets what was
// verified.
func (s stored) Address(ctx context.Context, valid time.Duration) (string, error) {
	key, err := s.verified(ctx)
	if err != nil {
		return "", err
	}
	return s.files.PresignGet(ctx, key, valid)
}

// verified is where the file lies that was verified, and stays: as it is sent, and so without
// the place where it was taken.
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

// unlessChanged tells publishers of a file that is not the one that was verified.
func unlessChanged(err error) error {
	if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", platforms.ErrFileChanged, err)
	}
	return err
}

// bytes gives access to the bytes of a media file. Those of one that does not exist
// cannot be read.
func (p *Preparer) bytes(m *v1alpha1.Media, rule *privacy, s *sent) stored {
	if m == nil {
		return stored{files: p.o.Files, privacy: &privacy{}, sent: s}
	}
	return stored{
		files: p.o.Files, key: store.Key(m), etag: m.Status.ETag, overwritable: store.Overwritable(m),
		mimeType: m.Spec.MimeType, size: m.Status.SizeBytes, privacy: rule, sent: s,
	}
}
