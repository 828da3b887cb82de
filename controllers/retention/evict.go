// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting/retention"
)

func (s *Sweeper) evictDue(ctx context.Context, team *v1alpha1.Team) (more bool, err error) {
	a := s.teams[team.Spec.Namespace]
	if a == nil {
		return false, nil // Reading its posts failed.
	}
	// A sweep takes up to an hour, and the Team may be deleted in the meantime.
	if owns, err := s.owns(ctx, team); !owns {
		return false, err
	}
	entries := a.popDue(s.Clock.Now(), batchSize)
	if len(entries) == 0 {
		return false, nil
	}
	posts, err := s.overdue(ctx, team, a, entries)
	if err != nil {
		a.requeue(entries, s.Clock.Now().Add(retryAfter))
		return false, fmt.Errorf("cannot archive posts of team %s: %w", team.Name, err)
	}
	var problems []error
	if len(posts) > 0 && s.Archive != nil {
		kept, err := s.archive(ctx, team, posts)
		if err != nil {
			s.requeue(a, posts, kept)
			problems = append(problems, fmt.Errorf("cannot archive posts of team %s: %w", team.Name, err))
		}
		posts = kept.archived
	}
	for _, post := range posts {
		// Deleting a Team deletes its archive, so its posts are kept.
		owns, err := s.owns(ctx, team)
		if owns {
			err = s.remove(ctx, post)
		}
		if !owns || err != nil {
			a.requeue([]entry{{name: post.Name, at: s.evictAt(post, a.times)}}, s.Clock.Now().Add(retryAfter))
			problems = append(problems, err)
		}
	}
	return true, errors.Join(problems...)
}

func (s *Sweeper) owns(ctx context.Context, team *v1alpha1.Team) (bool, error) {
	owner, err := s.Owner(ctx, team.Spec.Namespace)
	return err == nil && owner != nil && owner.UID == team.UID && owner.DeletionTimestamp.IsZero(), err
}

func (s *Sweeper) archive(ctx context.Context, team *v1alpha1.Team, posts []*v1alpha1.Post) (kept outcome, err error) {
	s.Failpoint(PointBeforeArchive)
	kept, err = s.saveRecords(ctx, posts)
	if len(kept.archived) == 0 {
		return kept, err
	}
	s.Failpoint(PointAfterRecord)
	if failed := s.Archive.List(ctx, team, kept.archived...); failed != nil {
		return outcome{refused: posts}, errors.Join(err, failed)
	}
	s.Failpoint(PointAfterArchive)
	return kept, err
}

// outcome is the result of archiving posts: archived, refused, or in neither list if not tried.
type outcome struct {
	archived, refused []*v1alpha1.Post
}

// maxRefused limits the archive's consecutive failures, not counting errors about a record itself. One bad record must
// not keep the team's other posts in the cluster; after two failures, the archive counts as unavailable.
const maxRefused = 2

func (s *Sweeper) saveRecords(ctx context.Context, posts []*v1alpha1.Post) (kept outcome, err error) {
	all := s.Archive.SaveRecords(ctx, posts)
	switch {
	case all == nil:
		return outcome{archived: posts}, nil
	case len(posts) == 1:
		return outcome{refused: posts}, all //nolint:wrapcheck // the error names the record
	}
	var problems []error
	for i, inARow := 0, 0; i < len(posts) && inARow < maxRefused && ctx.Err() == nil; i++ {
		if err := s.Archive.SaveRecords(ctx, posts[i:i+1]); err != nil {
			kept.refused = append(kept.refused, posts[i])
			problems = append(problems, err)
			if !archive.IsRecordError(err) {
				inARow++
			}
			continue
		}
		kept.archived, inARow = append(kept.archived, posts[i]), 0
	}
	if len(kept.archived)+len(kept.refused) < len(posts) {
		problems = append(problems, all)
	}
	return kept, errors.Join(problems...)
}

// requeue adds the posts that were not archived to the agenda: refused posts are retried after a delay, and untried
// ones keep their time.
func (s *Sweeper) requeue(a *agenda, posts []*v1alpha1.Post, kept outcome) {
	var refused, rest []entry
	for _, post := range posts {
		e := entry{name: post.Name, at: s.evictAt(post, a.times)}
		switch {
		case slices.Contains(kept.refused, post):
			refused = append(refused, e)
		case !slices.Contains(kept.archived, post):
			rest = append(rest, e)
		}
	}
	a.requeue(refused, s.Clock.Now().Add(retryAfter))
	a.add(rest)
}

// overdue reads posts from the API server, within the rate limit. It returns the posts whose time in the cluster is
// over and that no lookup needs. Others return to the agenda or, if they are being deleted, are left to package post.
func (s *Sweeper) overdue(ctx context.Context, team *v1alpha1.Team, a *agenda, entries []entry) ([]*v1alpha1.Post, error) {
	doubt, err := s.oldestOpenCall(ctx, team.Spec.Namespace, a.times)
	if err != nil {
		return nil, err
	}
	var posts []*v1alpha1.Post
	for _, e := range entries {
		if err := s.pace.Wait(ctx); err != nil {
			return nil, fmt.Errorf("stopped while removing posts: %w", err)
		}
		post := &v1alpha1.Post{}
		err := s.APIReader.Get(ctx, types.NamespacedName{Namespace: team.Spec.Namespace, Name: e.name}, post)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("cannot read post %s/%s: %w", team.Spec.Namespace, e.name, err)
		}
		if !post.DeletionTimestamp.IsZero() || !post.Status.Finished || post.Status.FinishedAt == nil || !a.times.Evicts(post.Labels) {
			continue
		}
		if at := s.evictAt(post, a.times); s.Clock.Now().Before(at) {
			a.add([]entry{{name: e.name, at: at}})
			continue
		}
		if doubt.concerns(post, s.Clock.Now()) {
			a.add([]entry{{name: e.name, at: s.Clock.Now().Add(retryAfter)}})
			continue
		}
		posts = append(posts, post)
	}
	return posts, nil
}

// remove deletes a post at its archived resourceVersion, without its finalizer. A changed post is archived again first.
func (s *Sweeper) remove(ctx context.Context, post *v1alpha1.Post) error {
	before := post.DeepCopy()
	if controllerutil.RemoveFinalizer(post, v1alpha1.DeliveryFinalizer) {
		if err := s.Client.Patch(ctx, post, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ignoreNotFound(fmt.Errorf("cannot remove the finalizer from the finished post %s/%s: %w", post.Namespace, post.Name, err))
		}
		s.Failpoint(PointAfterRelease)
	}
	err := s.Client.Delete(ctx, post, client.Preconditions{UID: &post.UID, ResourceVersion: &post.ResourceVersion})
	if err != nil {
		return ignoreNotFound(fmt.Errorf("cannot delete the finished post %s/%s: %w", post.Namespace, post.Name, err))
	}
	s.Failpoint(PointAfterDelete)
	s.Metrics.incRemoved()
	return nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// backfillFinishedOn records when posts from an older version were finished, and returns their agenda entries.
func (s *Sweeper) backfillFinishedOn(ctx context.Context, a *agenda, namespace string, names []string) ([]entry, error) {
	var dated []entry
	for _, name := range names {
		if err := s.pace.Wait(ctx); err != nil {
			return dated, fmt.Errorf("stopped while recording when posts were finished: %w", err)
		}
		post := &v1alpha1.Post{}
		err := s.APIReader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, post)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return dated, fmt.Errorf("cannot read post %s/%s: %w", namespace, name, err)
		}
		if post.Status.Finished && post.Status.FinishedAt == nil {
			before := post.DeepCopy()
			at := retention.FinishedAt(post)
			post.Status.FinishedAt, post.Status.FinishedOn = v1alpha1.NewTimePtr(at), dayOf(at)
			if err := s.Client.Status().Patch(ctx, post, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
				if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
					continue
				}
				return dated, fmt.Errorf("cannot record when post %s/%s was finished: %w", namespace, name, err)
			}
			ctrl.LoggerFrom(ctx).V(1).Info("recorded when a post was finished", "namespace", namespace, "name", name, "finishedAt", at)
		}
		if post.Status.FinishedAt != nil {
			dated = append(dated, entry{name: name, at: s.evictAt(post, a.times)})
		}
	}
	return dated, nil
}
