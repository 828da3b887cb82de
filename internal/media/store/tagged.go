// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Derived is where something lies that was made of the file under a key: a
// rendition of it. It goes with the file; see DeleteAll. The name is made of
// letters and digits. It lies beside the file and not below it, since some stores
// keep files as a disk does.
func Derived(key, name string) string { return key + "." + name }

// PutTagged is Put for a file about which something has to be remembered that
// Stat tells again: words in lower case with their values.
func (s *Store) PutTagged(ctx context.Context, key, mimeType string, size int64, body io.Reader, tags map[string]string) (Object, error) {
	info, err := s.core.Client.PutObject(ctx, s.bucket, key, body, size, minio.PutObjectOptions{
		ContentType: mimeType, DisableMultipart: true, UserMetadata: tags,
	})
	if err != nil {
		return Object{}, explain("cannot put the file into the store", err)
	}
	return Object{Key: key, Size: info.Size, ETag: info.ETag, ContentType: mimeType, ModifiedAt: s.clock.Now(), Tags: tags}, nil
}

// DeleteAll removes a file and what was made of it.
func (s *Store) DeleteAll(ctx context.Context, key string) error {
	problems := []error{s.Delete(ctx, key)}
	for object, err := range s.List(ctx, Derived(key, "")) {
		if err != nil {
			problems = append(problems, fmt.Errorf("cannot find what was made of the file: %w", err))
			break
		}
		problems = append(problems, s.Delete(ctx, object.Key))
	}
	return errors.Join(problems...)
}

// tagsOf are what a file was tagged with: the names come back as a header's.
func tagsOf(info minio.ObjectInfo) map[string]string {
	if len(info.UserMetadata) == 0 {
		return nil
	}
	tags := make(map[string]string, len(info.UserMetadata))
	for name, value := range info.UserMetadata {
		tags[strings.ToLower(name)] = value
	}
	return tags
}
