// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// Reserved is the prefix of Herald's own keys in the bucket. It is not a namespace's name, so no Media's key has it.
const Reserved = "_herald/"

// Absent reports whether there is no store, so that all requests return ErrNone.
func (s *Store) Absent() bool { return s.none }

// ErrTooLarge is returned for a document that exceeds the reader's limit.
var ErrTooLarge = errors.New("the document in the store is too large")

// ErrSame is returned for a document that still has the etag that the reader passed.
var ErrSame = errors.New("the document in the store is the same as before")

// ReadDocument returns the content of a document, which is a small file of Herald's own, and its etag, in one request.
// The error is ErrTooLarge if the document is longer than most bytes, ErrNotFound if it is missing, and ErrSame if
// known is not empty and still its etag. A 404 from anything but the store is a different error.
func (s *Store) ReadDocument(ctx context.Context, key, known string, most int64) (data []byte, etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, TimeoutFor(most))
	defer cancel()
	var options minio.GetObjectOptions
	if known != "" {
		if err := options.SetMatchETagExcept(known); err != nil {
			return nil, "", fmt.Errorf("cannot ask for a document that is not of etag %q: %w", known, err)
		}
	}
	body, info, _, err := s.core.GetObject(ctx, s.bucket, key, options)
	if err != nil {
		if minio.ToErrorResponse(err).StatusCode == http.StatusNotModified {
			return nil, known, ErrSame
		}
		return nil, "", readError(err)
	}
	defer func() { _ = body.Close() }() // Close errors do not affect the data read.
	if info.Size > most {
		return nil, "", fmt.Errorf("%w: %s has %d bytes, and at most %d are read", ErrTooLarge, key, info.Size, most)
	}
	data = make([]byte, max(info.Size, 0))
	if _, err := io.ReadFull(body, data); err != nil {
		return nil, "", fmt.Errorf("cannot read a document in the store: %w", err)
	}
	return data, info.ETag, nil
}

// errForeign404 is the error for a 404 that does not come from the store.
var errForeign404 = errors.New("cannot read a document in the store: the 404 does not come from the store, which would name the missing key; " +
	"check the proxies between Herald and the store, such as an ingress")

// readError maps a read error. Only the store's own response counts as ErrNotFound: a proxy in front of the store also
// responds with 404 when it does not find the store, and a post would then be sent as if it had never existed.
func readError(err error) error {
	response := minio.ToErrorResponse(err)
	if response.StatusCode == http.StatusNotFound && response.Code != minio.NoSuchBucket && (response.XMLName.Local == "" || response.Code != minio.NoSuchKey) {
		return errForeign404
	}
	return explain("cannot read a document in the store", err)
}

// Any is the etag for an unconditional PutDocument.
const Any = "*"

// PutDocument stores a document if the existing one has the given etag, and returns its new etag. An empty etag
// requires that there is none. Otherwise the error is ErrChanged. A response may be lost and the request retried, so
// the caller's own write can also cause ErrChanged: the caller must read again. If a store reports that it does not
// support conditions, the write is unconditional.
func (s *Store) PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, TimeoutFor(int64(len(data))))
	defer cancel()
	options := minio.PutObjectOptions{ContentType: mimeType, DisableMultipart: true}
	switch etag {
	case Any:
	case "":
		options.SetMatchETagExcept("*")
	default:
		options.SetMatchETag(etag)
	}
	info, err := s.core.Client.PutObject(ctx, s.bucket, key, bytes.NewReader(data), int64(len(data)), options)
	if err == nil {
		return info.ETag, nil
	}
	status := minio.ToErrorResponse(err).StatusCode // ToErrorResponse does not unwrap errors
	if etag != Any && status == http.StatusNotImplemented {
		return s.PutDocument(ctx, key, mimeType, data, Any)
	}
	err = explain("cannot put a document into the store", err)
	// Amazon S3 responds with 409 to one of two simultaneous conditional writes.
	if etag != Any && (errors.Is(err, ErrNotFound) || status == http.StatusConflict && !IsFileError(err)) {
		return "", ErrChanged
	}
	return "", err
}
