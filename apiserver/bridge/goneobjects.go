// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
)

// Requests reads the records of deleted objects' Idempotency-Keys; *archive.Archive implements it.
type Requests interface {
	Request(ctx context.Context, team archive.Team, name string) (archive.Request, error)
}

// requestTimeout is the timeout for reading from the bucket, after which the key counts as new. The manager also looks
// in the bucket before it publishes a post that has a key, which prevents a second publication.
const requestTimeout = 3 * time.Second

// deletedRequest returns the record of the request that created an object of this name, if the object has been deleted
// and its key is still valid. It returns nil for an object without a key, or if the bucket cannot be read.
func (s *Service) deletedRequest(ctx context.Context, asked metav1.Object) *archive.Request {
	if s.Requests == nil || asked.GetAnnotations()[v1alpha1.RequestAnnotation] == "" {
		return nil
	}
	team := s.Owner(asked.GetNamespace())
	if team == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := s.Requests.Request(ctx, archive.Team{Namespace: asked.GetNamespace(), Name: team.Name}, asked.GetName())
	switch {
	case errors.Is(err, archive.ErrNotFound), errors.Is(err, archive.ErrNone):
		return nil
	case err != nil:
		s.Log.WarnContext(ctx, "Cannot check whether an Idempotency-Key was used for a deleted object; treating it as new",
			slog.String("namespace", asked.GetNamespace()), slog.String("name", asked.GetName()), slog.Any("error", err))
		return nil
	}
	return &found
}

// archivedPost returns the archived post that a request with the same key created and that may have been published. It
// returns nil if there is none or the archive cannot be read; the manager checks the archive again before it publishes.
func (s *Service) archivedPost(ctx context.Context, asked *v1alpha1.Post) *v1alpha1.Post {
	if s.Archive == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	post, err := s.Archive.PostIncludingDeleted(ctx, asked.Namespace, asked.Name)
	if err != nil {
		s.Log.WarnContext(ctx, "Cannot check whether an Idempotency-Key was used for an archived post; treating it as new",
			slog.String("namespace", asked.Namespace), slog.String("name", asked.Name), slog.Any("error", err))
		return nil
	}
	return post
}

// refuseDeleted rejects a post whose key belongs to a post that was deleted before it was published.
func (s *Service) refuseDeleted(ctx context.Context, asked *v1alpha1.Post) error {
	found := s.deletedRequest(ctx, asked)
	switch {
	case found == nil:
		return nil
	case !sameFingerprint(found.Fingerprint, asked.Annotations[v1alpha1.RequestAnnotation]):
		return usedForAnother(asked, asked.Name)
	case asked.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginWeb:
		return errorf(CodeConflict, "this form has already created post %s, which was deleted before it was published; nothing was posted. Start a new post.", asked.Name)
	default:
		return errorf(CodeConflict,
			"the post that this Idempotency-Key created, %s, was deleted before it was published; nothing was posted. Use a new key to post it after all.", asked.Name)
	}
}

// refuseStopped returns the error for a key of a post that was deleted during delivery: a user stopped it.
func refuseStopped(asked *v1alpha1.Post) error {
	if asked.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginWeb {
		return errorf(CodeConflict,
			"this form has already created post %s, which was deleted while it was being published: anything published by then stays online, and nothing more was posted. Start a new post.",
			asked.Name)
	}
	return errorf(CodeConflict,
		"the post that this Idempotency-Key created, %s, was deleted while it was being published: anything published by then stays online, and nothing more was posted. "+
			"Use a new key to post the rest.", asked.Name)
}

// refuseOtherFile rejects a file whose key belongs to another, deleted file.
func (s *Service) refuseOtherFile(ctx context.Context, asked *v1alpha1.Media) error {
	if found := s.deletedRequest(ctx, asked); found != nil && !sameFingerprint(found.Fingerprint, asked.Annotations[v1alpha1.RequestAnnotation]) {
		return errorf(CodeConflict, "this Idempotency-Key was used for another file, media %s; use a new key for a new file", asked.Name)
	}
	return nil
}
