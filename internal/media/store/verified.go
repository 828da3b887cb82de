// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// remembered is the number of verified files that a process caches, and rememberedFor is their TTL. By default, posts
	// are prepared less than that ahead of time.
	remembered    = 4096
	rememberedFor = time.Hour
	// copyTimeout is the timeout for copying one file, which is at most 1 GiB and does not leave the store.
	copyTimeout = 10 * time.Minute
)

// Verified returns a key that permanently holds the bytes with the given etag, for presigned URLs, which cannot require
// an etag. That is key itself, unless the file is overwritable; then Verified copies the file once. The copy is deleted
// together with the file (see DeleteAll). The error is ErrChanged if the file's etag has changed, and ErrNotFound if it
// is gone.
func (s *Store) Verified(ctx context.Context, key, etag string, overwritable bool) (string, error) {
	copied := Derived(key, Digest("copy\n"+etag))
	if s.isVerified(copied, etag) {
		return copied, nil
	}
	if overwritable {
		return copied, s.copyOnce(ctx, key, etag, copied)
	}
	if !s.isVerified(key, etag) {
		if err := s.checkETag(ctx, key, etag); err != nil {
			return "", err
		}
		s.recordVerified(key, etag)
	}
	return key, nil
}

func (s *Store) checkETag(ctx context.Context, key, etag string) error {
	object, err := s.Stat(ctx, key)
	if err == nil && object.ETag != etag {
		return ErrChanged
	}
	return err
}

// copyOnce ensures that the copy of a file exists. Concurrent calls for the same copy share one request, which
// continues even if all of them stop waiting.
func (s *Store) copyOnce(ctx context.Context, key, etag, to string) error {
	copied := s.copying.DoChan(to, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyTimeout)
		defer cancel()
		return nil, s.ensureCopy(ctx, key, etag, to)
	})
	select {
	case result := <-copied:
		return result.Err
	case <-ctx.Done():
		return fmt.Errorf("the file was not copied in the store in time: %w", ctx.Err())
	}
}

// ensureCopy copies a file unless the copy exists. If a store gives copies different etags, it copies them again.
func (s *Store) ensureCopy(ctx context.Context, key, etag, to string) error {
	object, err := s.stat(ctx, to)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err != nil || object.ETag != etag {
		if err := s.copy(ctx, key, etag, to); err != nil {
			return err
		}
	}
	s.recordVerified(to, etag)
	return nil
}

// copy makes the store copy a file, on the condition that it has the given etag.
func (s *Store) copy(ctx context.Context, key, etag, to string) error {
	info, err := s.core.Client.CopyObject(ctx,
		minio.CopyDestOptions{Bucket: s.bucket, Object: to},
		minio.CopySrcOptions{Bucket: s.bucket, Object: key, MatchETag: etag})
	if err != nil {
		return explain("cannot copy the file in the store", err)
	}
	if info.ETag == etag {
		return nil
	}
	// Encrypted copies have different etags. A store that ignores the condition copies the file's current content.
	if err := s.checkETag(ctx, key, etag); err != nil {
		return errors.Join(err, s.Delete(ctx, to))
	}
	return nil
}

func (s *Store) isVerified(key, etag string) bool {
	_, ok := s.verified.Get(key + "\n" + etag)
	return ok
}

func (s *Store) recordVerified(key, etag string) {
	s.verified.Add(key+"\n"+etag, struct{}{}, rememberedFor)
}
