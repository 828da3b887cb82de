// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

// PartFiles stores files in parts, so an interrupted connection costs only one part; package store implements it.
type PartFiles interface {
	BeginParts(ctx context.Context, key, mimeType string) (upload string, err error)
	PresignParts(ctx context.Context, key, upload string, size int64) (urls []string, expires time.Time, err error)
	JoinParts(ctx context.Context, key, upload string, size int64) error
	AbortParts(ctx context.Context, key, upload string) error
}

// PartUpload is a registered file that is uploaded in parts.
type PartUpload struct {
	// ID is the media's id, and Upload the upload's id in the store.
	ID, Upload string
	// PartBytes is the size of each part but the last.
	PartBytes int64
	// URLs contains a URL for each part, which accepts one PUT of exactly the part, or "" for a part that is already
	// stored. The URLs grant access and must not be logged.
	URLs []string
}

// CreatePartUpload registers a file like CreateMediaUpload, with the same limits, for an upload in parts. A small file,
// or any file if the store does not support parts, gets a single URL.
func (s *Service) CreatePartUpload(ctx context.Context, caller Caller, in CreateMediaUpload) (MediaUpload, *PartUpload, error) {
	if s.Parts == nil || in.Spec.SizeBytes <= store.PartSize {
		made, err := s.CreateMediaUpload(ctx, caller, in)
		return made, nil, err
	}
	media, _, err := s.registerUpload(ctx, caller, &in)
	if err != nil {
		return MediaUpload{}, nil, err
	}
	parts, err := s.beginParts(ctx, media)
	if err == nil {
		return MediaUpload{ID: media.Name, Name: in.Spec.FileName}, parts, nil
	}
	s.Log.InfoContext(ctx, "Cannot start a multipart upload; offering a single PUT", "namespace", media.Namespace, "media", media.Name, "error", err)
	address, _, err := s.Files.PresignPut(ctx, store.UIDKey(media), string(in.Spec.MimeType), in.Spec.SizeBytes)
	if err != nil {
		return MediaUpload{}, nil, fmt.Errorf("sign an upload URL: %w", err)
	}
	return MediaUpload{ID: media.Name, UploadURL: address, Name: in.Spec.FileName}, nil, nil
}

// beginParts begins an upload in parts. Listing its parts checks that the access key has the permission to do so.
func (s *Service) beginParts(ctx context.Context, media *v1alpha1.Media) (*PartUpload, error) {
	upload, err := s.Parts.BeginParts(ctx, store.UIDKey(media), string(media.Spec.MimeType))
	if err != nil {
		return nil, fmt.Errorf("start a multipart upload: %w", err)
	}
	urls, _, err := s.Parts.PresignParts(ctx, store.UIDKey(media), upload, media.Spec.SizeBytes)
	if err != nil {
		s.abortParts(ctx, media, upload)
		return nil, fmt.Errorf("sign the URLs of parts: %w", err)
	}
	return &PartUpload{ID: media.Name, Upload: upload, PartBytes: store.PartSize, URLs: urls}, nil
}

// abortParts removes an upload's parts from the store. If that fails, the manager removes them when the file has
// expired.
func (s *Service) abortParts(ctx context.Context, media *v1alpha1.Media, upload string) {
	if err := s.Parts.AbortParts(ctx, store.UIDKey(media), upload); err != nil {
		s.Log.InfoContext(ctx, "Cannot abort a multipart upload", "namespace", media.Namespace, "media", media.Name, "error", err)
	}
}

var errUploadOver = &Error{Code: CodeNotFound, Message: "this upload has ended; upload the file again"}

// ResumeUpload returns fresh URLs for the missing parts of a file, for which the manager then waits. A complete file
// has no missing parts: the response to FinishUpload was lost.
func (s *Service) ResumeUpload(ctx context.Context, caller Caller, id, upload string) (PartUpload, error) {
	media, err := s.begun(ctx, caller, id)
	if err != nil {
		return PartUpload{}, err
	}
	complete := PartUpload{ID: id, Upload: upload, PartBytes: store.PartSize, URLs: []string{}}
	if media.Status.Phase == v1alpha1.MediaUploaded {
		return complete, nil
	}
	urls, until, err := s.Parts.PresignParts(ctx, store.UIDKey(media), upload, media.Spec.SizeBytes)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return complete, s.join(ctx, media, upload)
	case err != nil:
		return PartUpload{}, fmt.Errorf("sign the URLs of parts: %w", err)
	}
	if err := s.Media.SetUploadDeadline(ctx, media.Namespace, media.Name, until); err != nil {
		return PartUpload{}, fmt.Errorf("record the upload deadline: %w", err)
	}
	return PartUpload{ID: id, Upload: upload, PartBytes: store.PartSize, URLs: urls}, nil
}

// FinishUpload joins the parts of a file. It returns a CONFLICT if parts are missing.
func (s *Service) FinishUpload(ctx context.Context, caller Caller, id, upload string) error {
	media, err := s.begun(ctx, caller, id)
	if err != nil || media.Status.Phase == v1alpha1.MediaUploaded {
		return err
	}
	return s.join(ctx, media, upload)
}

func (s *Service) join(ctx context.Context, media *v1alpha1.Media, upload string) error {
	switch err := s.Parts.JoinParts(ctx, store.UIDKey(media), upload, media.Spec.SizeBytes); {
	case errors.Is(err, store.ErrIncomplete):
		return errorf(CodeConflict, "parts of the file are missing; upload them")
	case errors.Is(err, store.ErrNotFound):
		return errUploadOver
	case err != nil:
		return fmt.Errorf("complete a multipart upload: %w", err)
	default:
		return nil
	}
}

// AbortUpload removes the parts of a file that its user no longer wants. The file expires.
func (s *Service) AbortUpload(ctx context.Context, caller Caller, id, upload string) error {
	media, err := s.begun(ctx, caller, id)
	if err == nil {
		s.abortParts(ctx, media, upload)
	}
	return err
}

// begun returns one of the team's files that is being uploaded or has been uploaded.
func (s *Service) begun(ctx context.Context, caller Caller, id string) (*v1alpha1.Media, error) {
	if err := s.RequireSubscription(caller); err != nil {
		return nil, err
	}
	if err := require(caller, ScopeDraft); err != nil {
		return nil, err
	}
	if s.Parts == nil || !validName(id) {
		return nil, errUploadOver
	}
	media, err := s.Media.Get(ctx, caller.Namespace, id)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errUploadOver
	case err != nil:
		return nil, fmt.Errorf("read a media file: %w", err)
	case !media.DeletionTimestamp.IsZero() || media.Status.Phase == v1alpha1.MediaExpired || media.Status.Phase == v1alpha1.MediaRejected:
		return nil, errUploadOver
	default:
		return media, nil
	}
}
