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
	// forgetEvery is how often records are compared with the posts of the cluster and of the
	// lists. Those that neither has are of posts that were applied, that were deleted before
	// they were finished, or that a crash left.
	forgetEvery = 24 * time.Hour
	// unusedRecordTTL is how long a record is kept that nobody needs: longer than any rule that has to
	// be known here, such as that for keys, and than it takes until the posts of a cluster that
	// is made anew are there.
	unusedRecordTTL = 48 * time.Hour
	// mostFaults is how many failures of the store are passed over at a time; those of one
	// record do not count.
	mostFaults = 16
)

// forget removes the records of posts that leave the archive, unless a post of the name is in
// the cluster, whose record it is too, or somebody else may still need it: then the daily sweep
// of records removes it.
//
// One whose record cannot be removed stays in the lists, and keeps no other one there. After some failures of the
// store it is not asked for the rest.
func (s *Archiver) forget(ctx context.Context, of archive.Team, posts []lists.Ref) error {
	var group errgroup.Group
	group.SetLimit(maxConcurrentSaves)
	var mu sync.Mutex
	failed, faults := &lists.RetainedError{Names: map[string]bool{}}, 0
	many := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return faults >= mostFaults
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
	_ = group.Wait() // Each notes its error.
	switch {
	case len(failed.Names) == 0:
		return nil
	case many():
		return failed.Err
	}
	return failed
}

func (s *Archiver) forgetOne(ctx context.Context, of archive.Team, post lists.Ref) error {
	// First the cluster, then the record: a post that is gone by now has left its own.
	if there, err := s.inCluster(ctx, of.Namespace, post.Name); there || err != nil {
		return err
	}
	kept, err := s.readRecord(ctx, of, post.Name)
	if err != nil || kept != nil && s.outlasts(kept, post) {
		return err
	}
	return s.Archive.Delete(ctx, of, post.Name) //nolint:wrapcheck // it says which record
}

// outlasts reports whether a record is needed for longer than the entry that leaves the lists.
// It may tell of a younger post of the name, which was deleted before it was finished, so that
// no list has it: what that one published would go out again. Or the post was applied: what
// applies it may be about to put it back, into a cluster that is made anew, too. Or it was made
// with an Idempotency-Key that holds, as can be where its team has shortened the time in the
// archive since it was entered.
func (s *Archiver) outlasts(kept *record.Record, listed lists.Ref) bool {
	return string(kept.UID) != listed.UID || kept.Labels[v1alpha1.OriginLabel] == "" || s.Clock.Now().Before(posting.KeyExpiresAt(kept.Post()))
}

// sweepRecords removes, once a day, records that are over their time and that nobody has needed
// for long enough, and requests whose keys hold no more. Where there are many it removes some,
// and reports that there are more: they are the next sweep's.
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
			// First the cluster, then the lists: a post that has left is on them. One that leaves
			// while this goes on is noted at most, and is found there by the next call.
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
		return err == nil, err //nolint:wrapcheck // it says what could not be done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordsSweptAt[of] = now
	return false, nil
}
