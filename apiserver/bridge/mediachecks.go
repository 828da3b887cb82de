// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/rules"
)

// checksAtOnce is how many of a post's files are checked at the same time.
const checksAtOnce = 8

// mediaOf finds the files that a post names, and verifies at once those that
// have been uploaded but not yet examined. The result answers the rules.
func (s *Service) mediaOf(ctx context.Context, post *v1alpha1.Post) (func(name string) *v1alpha1.Media, error) {
	if errs := rules.ValidateFiles(post); len(errs) > 0 {
		return nil, invalid(errs)
	}
	var mu sync.Mutex
	found := map[string]*v1alpha1.Media{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(checksAtOnce)
	for _, name := range posting.MediaNames(&post.Spec) {
		if !validName(name) {
			continue
		}
		group.Go(func() error {
			media, err := s.verified(ctx, post.Namespace, name)
			mu.Lock()
			defer mu.Unlock()
			found[name] = media
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return func(name string) *v1alpha1.Media { return found[name] }, nil
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
	status, err := s.Verify(ctx, media)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrNone):
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
		// The manager came first, or the Media went: what stands there now
		// counts, and otherwise what was just found out.
		current, err := s.Media.Get(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // as above
		}
		if err == nil && current.Status.Phase != "" && current.Status.Phase != v1alpha1.MediaPending {
			return current, nil
		}
		return media, nil
	default:
		return nil, fmt.Errorf("record that a media file was verified: %w", err)
	}
}
