// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/posting/retention"
)

const (
	// forgetEvery is the interval for comparing records with the posts in the cluster and in the lists. Records in
	// neither belong to posts that were applied, that were deleted before they were finished, or that a crash left
	// behind.
	forgetEvery = 24 * time.Hour
	// unusedRecordTTL is how long an unused record is kept: longer than any rule that needs it, such as the TTL of
	// idempotency keys, and longer than it takes to restore the posts of a re-created cluster.
	unusedRecordTTL = 48 * time.Hour
	// maxFaults limits store failures in one call. Errors about a single record do not count.
	maxFaults = 16
)

// forget removes the records of posts that leave the archive. It keeps the record if a post of the same name is in the
// cluster, which shares it, or if the record is needed for longer; the daily sweep of records then removes it.
//
// A post whose record cannot be removed remains in the lists and does not block others. After maxFaults store failures,
// forget stops.
func (s *Archiver) forget(ctx context.Context, of archive.Team, posts []lists.Ref) error {
	var group errgroup.Group
	group.SetLimit(maxConcurrentSaves)
	var mu sync.Mutex
	failed, faults := &lists.RetainedError{Names: map[string]bool{}}, 0
	many := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return faults >= maxFaults
	}
	for _, post := range posts {
		if many() {
			break
		}
		group.Go(func() error {
			if err := s.forgetOne(ctx, of, post); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed.Names[post.Name], failed.Err = true, cmp.Or(failed.Err, err)
				if !archive.IsRecordError(err) {
					faults++
				}
			}
			return nil
		})
	}
	_ = group.Wait() // Each goroutine records its error.
	switch {
	case len(failed.Names) == 0:
		return nil
	case many():
		return failed.Err
	}
	return failed
}

func (s *Archiver) forgetOne(ctx context.Context, of archive.Team, post lists.Ref) error {
	// The cluster is read before the record: a post that is already gone has left its record.
	if there, err := s.inCluster(ctx, of.Namespace, post.Name); there || err != nil {
		return err
	}
	kept, err := s.readRecord(ctx, of, post.Name)
	if err != nil || kept != nil && s.outlasts(kept, post) {
		return err
	}
	return s.Archive.Delete(ctx, of, post.Name) //nolint:wrapcheck // the error names the record
}

// outlasts reports whether a record is needed for longer than the entry that leaves the lists, in three cases. The
// record may belong to a newer post of the same name that was deleted before it was finished and is not listed; without
// it, that post would be published again. The post may have been applied, and its tool may apply it again, perhaps into
// a re-created cluster. Or the post's Idempotency-Key is still valid, because the team has shortened its retention.
func (s *Archiver) outlasts(kept *record.Record, listed lists.Ref) bool {
	return string(kept.UID) != listed.UID || kept.Labels[v1alpha1.OriginLabel] == "" || s.Clock.Now().Before(posting.KeyExpiresAt(kept.Post()))
}

// sweepRecords removes, once a day, expired records that have been unused for long enough, and requests whose
// Idempotency-Keys have expired. It removes a limited number and reports whether more are left for the next sweep.
func (s *Archiver) sweepRecords(ctx context.Context, team *v1alpha1.Team, now time.Time, times retention.Times) (more bool, err error) {
	of := teamOf(team)
	s.mu.Lock()
	due := now.Sub(s.recordsSweptAt[of]) >= forgetEvery
	s.mu.Unlock()
	if !due {
		return false, nil
	}
	listed := sync.OnceValues(func() (*lists.View, error) { return s.Lists.View(ctx, lists.Team(of)) })
	_, more, err = s.Archive.Prune(ctx, of, archive.PruneOptions{
		Now: now, Before: now.Add(-times.Archived), GracePeriod: unusedRecordTTL,
		InUse: func(post string) (bool, error) {
			// The cluster is read before the lists: a post that has left is listed. At worst, a post that leaves during
			// this check is marked as unused, and the next call finds it in the lists.
			if there, err := s.inCluster(ctx, of.Namespace, post); there || err != nil {
				return there, err
			}
			view, err := listed()
			return err == nil && view.Has(post), err
		},
	})
	if errors.Is(err, lists.ErrDamaged) {
		return true, s.rebuild(ctx, team, err)
	}
	if !more {
		_, failed := s.Archive.ExpireRequests(ctx, of, now.Add(-posting.KeyTTL))
		err = errors.Join(err, failed)
	}
	if err != nil || more {
		return err == nil, err //nolint:wrapcheck // the error has its context
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordsSweptAt[of] = now
	return false, nil
}
