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

// Reserved begins the keys of what Herald itself keeps in the bucket. No namespace can be
// named so, so that no key of a Media begins with it.
const Reserved = "_herald/"

// Absent reports whether there is no store, so that all requests end in ErrNone.
func (s *Store) Absent() bool { return s.none }

// ErrTooLarge is returned for a document that has more bytes than its reader takes.
var ErrTooLarge = errors.New("the document in the store is larger than it may be")

// ErrSame is returned for a document that still has the etag that its reader knows.
var ErrSame = errors.New("the document in the store is the same as before")

// ReadDocument returns the bytes of a document, a small file of Herald's own, and its etag, in
// one request. A document of more bytes than most is ErrTooLarge, one that is not there
// ErrNotFound, and one that has the etag known, unless that is empty, is ErrSame. A 404 that is not
// the store's own is neither.
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
	defer func() { _ = body.Close() }() // What was read was read.
	if info.Size > most {
		return nil, "", fmt.Errorf("%w: %s has %d bytes, and at most %d are read", ErrTooLarge, key, info.Size, most)
	}
	data = make([]byte, max(info.Size, 0))
	if _, err := io.ReadFull(body, data); err != nil {
		return nil, "", fmt.Errorf("cannot read a document in the store: %w", err)
	}
	return data, info.ETag, nil
}

// errForeign404 is why nothing is known of a document.
var errForeign404 = errors.New("cannot read a document in the store: something answered 404 that is not the store, which would say that it has no such key; " +
	"look at what lies between Herald and the store, such as an ingress")

// readError says why a document was not read. That it is not there is believed of a store alone,
// which says so in its own words: a proxy before it answers 404 too, when it does not find the
// store, and a post would be sent as if it never had been.
func readError(err error) error {
	response := minio.ToErrorResponse(err)
	if response.StatusCode == http.StatusNotFound && response.Code != minio.NoSuchBucket && (response.XMLName.Local == "" || response.Code != minio.NoSuchKey) {
		return errForeign404
	}
	return explain("cannot read a document in the store", err)
}

// Any is the etag of PutDocument that sets no condition.
const Any = "*"

// PutDocument stores a document and returns its etag, on the condition that the one that is
// there has an etag; an empty one is the condition that nothing is there. Where the condition
// does not hold the error is ErrChanged. An answer may be lost and the request be repeated, so
// that ErrChanged can also follow a write of one's own: who gets it reads again. A store that
// says that it knows no conditions stores the document without.
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
	status := minio.ToErrorResponse(err).StatusCode // which does not look through wrapped errors
	if etag != Any && status == http.StatusNotImplemented {
		return s.PutDocument(ctx, key, mimeType, data, Any)
	}
	err = explain("cannot put a document into the store", err)
	// Amazon S3 answers 409 to one of two conditional writes at the same moment.
	if etag != Any && (errors.Is(err, ErrNotFound) || status == http.StatusConflict && !IsFileError(err)) {
		return "", ErrChanged
	}
	return "", err
}
