// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
)

// maxConcurrentChecks limits how many of a post's files are checked concurrently.
const maxConcurrentChecks = 8

// assumeValid returns a lookup function for unread files that treats every file as valid.
func assumeValid(post *v1alpha1.Post) func(name string) *v1alpha1.Media {
	file := &v1alpha1.Media{Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}}
	if post.Spec.Category == v1alpha1.CategoryVideo {
		file.Spec.MimeType = v1alpha1.MimeMP4
	}
	return func(string) *v1alpha1.Media { return file }
}

// mediaOf reads a post's files, and checks the uploads that the manager has not checked yet. It returns a lookup
// function for the rules. After maxMissing unusable files, it stops reading: the post is rejected anyway, and the
// others count as valid.
func (s *Service) mediaOf(ctx context.Context, post *v1alpha1.Post, names []string) (func(name string) *v1alpha1.Media, error) {
	found, unusable := make(map[string]*v1alpha1.Media, len(names)), 0
	for batch := range slices.Chunk(names, maxConcurrentChecks) {
		media, err := s.verifiedTogether(ctx, post.Namespace, batch)
		if err != nil {
			return nil, err
		}
		for i, name := range batch {
			found[name] = media[i]
			if media[i] == nil || media[i].Status.Phase != v1alpha1.MediaUploaded {
				unusable++
			}
		}
		if unusable >= maxMissing {
			break
		}
	}
	unread := assumeValid(post)
	return func(name string) *v1alpha1.Media {
		if media, read := found[name]; read {
			return media
		}
		return unread(name)
	}, nil
}

// verifiedTogether reads files concurrently and returns them in the order of names.
func (s *Service) verifiedTogether(ctx context.Context, namespace string, names []string) ([]*v1alpha1.Media, error) {
	media := make([]*v1alpha1.Media, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		if !validName(name) {
			continue
		}
		limits.MeterFrom(ctx).Parts(1)
		group.Go(func() (err error) {
			media[i], err = s.verified(ctx, namespace, name)
			return err
		})
	}
	return media, group.Wait()
}

// verified returns a media file's current state, or nil. If the upload is still pending, verified checks the store
// itself, because the client may have finished before the manager noticed.
func (s *Service) verified(ctx context.Context, namespace, name string) (*v1alpha1.Media, error) {
	media, err := s.Media.Get(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // the rules expect nil
	case err != nil:
		return nil, fmt.Errorf("read a media file: %w", err)
	case !media.DeletionTimestamp.IsZero(), media.Status.Phase != "" && media.Status.Phase != v1alpha1.MediaPending:
		return media, nil
	}
	limits.MeterFrom(ctx).Whole(1)
	status, err := s.Verify(ctx, media)
	switch {
	case errors.Is(err, store.ErrNotFound):
		// Either there is no upload, or the manager has just rejected the file, recorded the reason and deleted it. A
		// second read distinguishes the two.
		return s.settled(ctx, media)
	case errors.Is(err, store.ErrNone):
		return media, nil
	case errors.Is(err, store.ErrChanged):
		// The rules report this to the client. The manager also checks the file, and records the problem if it persists.
		media.Status.Phase = v1alpha1.MediaPending
		conditions.Apply(&media.Status.Conditions, probe.Overwritten(), media.Generation, s.Clock.Now())
		return media, nil
	case err != nil:
		return nil, fmt.Errorf("verify a media file: %w", err)
	}
	media.Status = status
	written, err := s.Media.UpdateStatus(ctx, media)
	switch {
	case err == nil:
		return written, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err):
		// The manager wrote first, or the Media was deleted.
		current, err := s.settled(ctx, media)
		if err != nil {
			return media, nil //nolint:nilerr // the result of this verification is the best available state
		}
		return current, nil
	default:
		return nil, fmt.Errorf("record that a media file was verified: %w", err)
	}
}

// settled rereads a media file. It returns nil if the file was deleted, and known if it has not been settled.
func (s *Service) settled(ctx context.Context, known *v1alpha1.Media) (*v1alpha1.Media, error) {
	limits.MeterFrom(ctx).Parts(1)
	current, err := s.Media.Get(ctx, known.Namespace, known.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // the rules expect nil
	case err != nil:
		return nil, fmt.Errorf("read a media file again: %w", err)
	case current.Status.Phase != "" && current.Status.Phase != v1alpha1.MediaPending:
		return current, nil
	default:
		return known, nil
	}
}
