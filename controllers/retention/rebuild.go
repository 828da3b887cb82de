// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/posting"
)

const rebuildBatch = 200

// rebuild rewrites a team's lists from the records of its posts, because one of their files is damaged or missing.
// Every finished post has a record, so posts in the cluster are listed too, as they will be when they leave.
func (s *Archiver) rebuild(ctx context.Context, team *v1alpha1.Team, why error) error {
	of := teamOf(team)
	log := ctrl.LoggerFrom(ctx).WithValues("team", team.Name, "namespace", of.Namespace)
	log.Error(why, "rebuilding the lists of a team's archived posts from its records")
	posts, err := s.Lists.Rebuild(ctx, lists.Team(of), s.entries(ctx, team))
	if err != nil {
		return err //nolint:wrapcheck // the error has its context
	}
	log.Info("rebuilt the lists of a team's archived posts", "posts", posts)
	s.markChanged(of)
	return nil
}

func (s *Archiver) entries(ctx context.Context, team *v1alpha1.Team) iter.Seq2[[]lists.Entry, error] {
	of := teamOf(team)
	return func(yield func([]lists.Entry, error) bool) {
		var names []string
		for entry, err := range s.Archive.Entries(ctx, of) {
			if err != nil {
				yield(nil, err)
				return
			}
			if names = append(names, entry.Post); len(names) < rebuildBatch {
				continue
			}
			if !yield(s.entriesOf(ctx, team, of, names)) {
				return
			}
			names = nil
		}
		yield(s.entriesOf(ctx, team, of, names))
	}
}

func (s *Archiver) entriesOf(ctx context.Context, team *v1alpha1.Team, of archive.Team, names []string) ([]lists.Entry, error) {
	found := make([]*lists.Entry, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentSaves)
	for i, name := range names {
		group.Go(func() error {
			kept, err := s.readRecord(ctx, of, name)
			if archive.IsRecordError(err) {
				ctrl.LoggerFrom(ctx).Error(err, "a post is not listed, because its record cannot be read", "namespace", of.Namespace, "name", name)
				return nil // one record must not block the lists of other posts
			}
			if err != nil || kept == nil || kept.FinishedAt == nil {
				return err
			}
			post := kept.Post()
			if posting.Unfinished(posting.Of(post).Phase()) {
				return nil // A client has written its status; see List.
			}
			entry, err := s.entry(ctx, team, post)
			found[i] = &entry
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // the error names the record
	}
	entries := make([]lists.Entry, 0, len(found))
	for _, entry := range found {
		if entry != nil {
			entries = append(entries, *entry)
		}
	}
	return entries, nil
}
