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

// Derived returns the key of a file that was made from the file under key, such as
// a rendition. It is deleted with that file; see DeleteAll. The name consists of
// letters and digits. It lies beside the file and not below it, since some stores
// have folders like a disk.
func Derived(key, name string) string { return key + "." + name }

// PutTagged is Put with tags, which Stat returns. Names of tags are words in lower
// case.
func (s *Store) PutTagged(ctx context.Context, key, mimeType string, size int64, body io.Reader, tags map[string]string) (Object, error) {
	info, err := s.core.Client.PutObject(ctx, s.bucket, key, body, size, minio.PutObjectOptions{
		ContentType: mimeType, DisableMultipart: true, UserMetadata: tags,
	})
	if err != nil {
		return Object{}, explain("cannot put the file into the store", err)
	}
	return Object{Key: key, Size: info.Size, ETag: info.ETag, ContentType: mimeType, ModifiedAt: s.clock.Now(), Tags: tags}, nil
}

// DeleteAll removes a file and the files derived from it.
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

// tagsOf returns the tags of a file, whose names come back as those of a header.
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
