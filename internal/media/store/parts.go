// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/herald-social/herald/api/v1alpha1"
)

// PartSize is the size of each part of an upload except the last, in bytes. S3 requires at least 5 MiB. A file of 1 GiB
// has 64 parts, and an interruption costs at most one of them.
const PartSize = 16 << 20

// ErrIncomplete is returned when an upload lacks parts.
var ErrIncomplete = errors.New("parts of the file are missing")

// uploadID matches the ids of uploads in parts. They come from clients, and stores that keep files on a disk use them
// as folder names.
var uploadID = regexp.MustCompile(`^[A-Za-z0-9._~+=-]+$`)

// maxUploadID is the maximum length of an upload's id; Amazon S3 uses 128 characters.
const maxUploadID = 1024

func isUploadID(s string) bool {
	return len(s) <= maxUploadID && uploadID.MatchString(s) && strings.Trim(s, ".") != ""
}

// BeginParts begins an upload in parts, and returns its id, which is valid for this key only.
func (s *Store) BeginParts(ctx context.Context, key, mimeType string) (upload string, err error) {
	if s.none {
		return "", ErrNone
	}
	upload, err = s.core.NewMultipartUpload(ctx, s.bucket, key, minio.PutObjectOptions{ContentType: mimeType})
	if err != nil {
		return "", explain("cannot start a multipart upload", err)
	}
	if !isUploadID(upload) {
		return "", errors.New("cannot start a multipart upload: the store returned an upload id in an unknown format")
	}
	return upload, nil
}

// PresignParts returns a URL for each part of a file of the given size, and the time when the URLs expire. A URL
// accepts its part by PUT, with exactly the part's Content-Length. It is "" if the store already has the part. The
// error is ErrNotFound if the upload is over.
func (s *Store) PresignParts(ctx context.Context, key, upload string, size int64) (urls []string, expires time.Time, err error) {
	stored, err := s.parts(ctx, key, upload, size)
	if err != nil {
		return nil, time.Time{}, err
	}
	expires = s.clock.Now().Add(v1alpha1.UploadURLLifetime)
	urls = make([]string, partCount(size))
	for i := range urls {
		if stored[i].PartNumber != 0 {
			continue
		}
		query := url.Values{"partNumber": {strconv.Itoa(i + 1)}, "uploadId": {upload}}
		signed := http.Header{"Content-Length": {strconv.FormatInt(partLength(size, i), 10)}}
		address, err := s.public.PresignHeader(ctx, http.MethodPut, s.bucket, key, v1alpha1.UploadURLLifetime, query, signed)
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("cannot sign the URL of a part: %w", err)
		}
		urls[i] = address.String()
	}
	return urls, expires, nil
}

// JoinParts joins the parts of an upload into the file under the key, which has the given size. The error is
// ErrIncomplete if a part is missing or has the wrong size, and ErrNotFound if the upload is over and there is no such
// file.
func (s *Store) JoinParts(ctx context.Context, key, upload string, size int64) error {
	err := s.join(ctx, key, upload, size)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	// It may have been joined already, and the response lost.
	object, err := s.stat(ctx, key)
	if err == nil && object.Size != size {
		err = ErrNotFound
	}
	return err
}

func (s *Store) join(ctx context.Context, key, upload string, size int64) error {
	stored, err := s.parts(ctx, key, upload, size)
	if err != nil {
		return err
	}
	joined := make([]minio.CompletePart, len(stored))
	for i, part := range stored {
		if part.PartNumber == 0 {
			return ErrIncomplete
		}
		joined[i] = minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag}
	}
	if _, err := s.core.CompleteMultipartUpload(ctx, s.bucket, key, upload, joined, minio.PutObjectOptions{}); err != nil {
		return explain("cannot complete the multipart upload", err)
	}
	return nil
}

// parts returns the stored parts of a file, by position. A part that is missing or has the wrong size is the zero
// value.
func (s *Store) parts(ctx context.Context, key, upload string, size int64) ([]minio.ObjectPart, error) {
	if s.none {
		return nil, ErrNone
	}
	if !isUploadID(upload) {
		return nil, ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	out := make([]minio.ObjectPart, partCount(size))
	for after := 0; ; {
		page, err := s.core.ListObjectParts(ctx, s.bucket, key, upload, after, 0)
		if err != nil {
			return nil, explain("cannot list the parts of the file", err)
		}
		for _, part := range page.ObjectParts {
			if i := part.PartNumber - 1; i < len(out) && part.Size == partLength(size, i) {
				out[i] = part
			}
		}
		if after = page.NextPartNumberMarker; !page.IsTruncated {
			return out, nil
		}
	}
}

func partCount(size int64) int { return int((size-1)/PartSize + 1) }

// partLength returns the length in bytes of the part at position i.
func partLength(size int64, i int) int64 { return min(PartSize, size-int64(i)*PartSize) }

// AbortParts removes an unfinished upload with its parts. It is not an error if the upload is over.
func (s *Store) AbortParts(ctx context.Context, key, upload string) error {
	if s.none {
		return ErrNone
	}
	if !isUploadID(upload) {
		return nil
	}
	if err := s.core.AbortMultipartUpload(ctx, s.bucket, key, upload); err != nil {
		if err = explain("cannot remove an unfinished upload", err); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// AbandonParts removes the unfinished uploads with the given prefix for which selected returns true. It does nothing if
// the store does not support listing uploads, or does not let the access key list them. A lifecycle rule then removes
// them.
func (s *Store) AbandonParts(ctx context.Context, prefix string, selected func(key string, started time.Time) bool) error {
	if s.none {
		return ErrNone
	}
	var problems []error
	for key, id := "", ""; ; {
		page, err := s.core.ListMultipartUploads(ctx, s.bucket, prefix, key, id, "", 0)
		if refusesListing(err) {
			return nil
		}
		if err != nil {
			return explain("cannot list the unfinished uploads", err)
		}
		for _, upload := range page.Uploads {
			if !selected(upload.Key, upload.Initiated) {
				continue
			}
			problems = append(problems, s.AbortParts(ctx, upload.Key, upload.UploadID))
		}
		if key, id = page.NextKeyMarker, page.NextUploadIDMarker; !page.IsTruncated {
			return errors.Join(problems...)
		}
	}
}

func refusesListing(err error) bool {
	return err != nil && slices.Contains([]int{http.StatusForbidden, http.StatusNotImplemented, http.StatusMethodNotAllowed}, minio.ToErrorResponse(err).StatusCode)
}
