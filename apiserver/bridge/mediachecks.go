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
	"github.com/herald-social/herald/apiserver/cost"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
)

// checksAtOnce is how many of a post's files are checked at the same time.
const checksAtOnce = 8

// assumeValid stands for the files of a post that were not read: whatever there is to say of
// one, it is not said of this.
func assumeValid(post *v1alpha1.Post) func(name string) *v1alpha1.Media {
	file := &v1alpha1.Media{Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}}
	if post.Spec.Category == v1alpha1.CategoryVideo {
		file.Spec.MimeType = v1alpha1.MimeMP4
	}
	return func(string) *v1alpha1.Media { return file }
}

// mediaOf finds the files that a post names, and verifies at once those that
// have been uploaded but not yet examined. The result answers the rules. Once
// maxMissing cannot be used, the others are not read, and taken for good:
// the post is refused in any case.
func (s *Service) mediaOf(ctx context.Context, post *v1alpha1.Post, names []string) (func(name string) *v1alpha1.Media, error) {
	found, unusable := make(map[string]*v1alpha1.Media, len(names)), 0
	for batch := range slices.Chunk(names, checksAtOnce) {
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

// verifiedTogether returns files side by side, in the order of their names.
func (s *Service) verifiedTogether(ctx context.Context, namespace string, names []string) ([]*v1alpha1.Media, error) {
	media := make([]*v1alpha1.Media, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		if !validName(name) {
			continue
		}
		cost.From(ctx).Parts(1)
		group.Go(func() (err error) {
			media[i], err = s.verified(ctx, namespace, name)
			return err
		})
	}
	return media, group.Wait()
}

// verified returns a media file as it is by now, nil if there is none. One that
// waits for its upload is examined on the spot: its client may have finished
// the upload a moment ago, before the manager noticed.
func (s *Service) verified(ctx context.Context, namespace, name string) (*v1alpha1.Media, error) {
	media, err := s.Media.Get(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // the rules ask for nil
	case err != nil:
		return nil, fmt.Errorf("read a media file: %w", err)
	case !media.DeletionTimestamp.IsZero(), media.Status.Phase != "" && media.Status.Phase != v1alpha1.MediaPending:
		return media, nil
	}
	cost.From(ctx).Whole(1)
	status, err := s.Verify(ctx, media)
	switch {
	case errors.Is(err, store.ErrNotFound):
		// Either the file never came, or the manager has just refused it,
		// recorded why, and deleted it: a second read tells which.
		return s.settled(ctx, media)
	case errors.Is(err, store.ErrNone):
		return media, nil
	case errors.Is(err, store.ErrChanged):
		// The rules tell the client. The manager checks too, and records it
		// if it lasts.
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
			return media, nil //nolint:nilerr // what was just found out is the best that is known
		}
		return current, nil
	default:
		return nil, fmt.Errorf("record that a media file was verified: %w", err)
	}
}

// settled reads a media file again and returns it if the manager has settled it in
// the meantime, nil if it was deleted, and otherwise the file as the caller knows it.
func (s *Service) settled(ctx context.Context, known *v1alpha1.Media) (*v1alpha1.Media, error) {
	cost.From(ctx).Parts(1)
	current, err := s.Media.Get(ctx, known.Namespace, known.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // the rules ask for nil
	case err != nil:
		return nil, fmt.Errorf("read a media file again: %w", err)
	case current.Status.Phase != "" && current.Status.Phase != v1alpha1.MediaPending:
		return current, nil
	default:
		return known, nil
	}
}
