// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/retention"
)

// leave lets posts of a team go that are due, and reports whether there are more.
func (s *Sweeper) leave(ctx context.Context, team *v1alpha1.Team) (more bool, err error) {
	a := s.teams[team.Spec.Namespace]
	if a == nil {
		return false, nil // It could not be read.
	}
	// A sweep goes on for up to an hour, in which the Team may be deleted.
	if owns, err := s.owns(ctx, team); !owns {
		return false, err
	}
	entries := a.next(s.Clock.Now(), turn)
	if len(entries) == 0 {
		return false, nil
	}
	posts, err := s.overdue(ctx, team, a, entries)
	if err == nil && len(posts) > 0 && s.Archive != nil {
		err = s.archive(ctx, team, posts)
	}
	if err != nil {
		a.again(entries, s.Clock.Now().Add(retryAfter))
		return false, fmt.Errorf("cannot archive posts of team %s: %w", team.Name, err)
	}
	var problems []error
	for _, post := range posts {
		// What the archive has of a Team that is being deleted goes: its posts stay.
		owns, err := s.owns(ctx, team)
		if owns {
			err = s.remove(ctx, post)
		}
		if !owns || err != nil {
			a.again([]entry{{name: post.Name, at: s.leavesAt(post, a.times)}}, s.Clock.Now().Add(retryAfter))
			problems = append(problems, err)
		}
	}
	return true, errors.Join(problems...)
}

// owns reports whether a Team still owns its namespace, and is not being deleted.
func (s *Sweeper) owns(ctx context.Context, team *v1alpha1.Team) (bool, error) {
	owner, err := s.Owner(ctx, team.Spec.Namespace)
	return err == nil && owner != nil && owner.UID == team.UID && owner.DeletionTimestamp.IsZero(), err
}

// archive has what became of posts kept and listed.
func (s *Sweeper) archive(ctx context.Context, team *v1alpha1.Team, posts []*v1alpha1.Post) error {
	s.Failpoint(PointBeforeArchive)
	if err := s.Archive.Keep(ctx, posts); err != nil {
		return err //nolint:wrapcheck // it says which record
	}
	s.Failpoint(PointAfterRecord)
	if err := s.Archive.List(ctx, team, posts...); err != nil {
		return err //nolint:wrapcheck // it says what could not be done
	}
	s.Failpoint(PointAfterArchive)
	return nil
}

// overdue reads posts anew, no faster than they may leave, and returns those whose time in
// the cluster is over, and which no lookup needs. Others are entered again, or are somebody else's concern: one that
// is being deleted is let go by package post.
func (s *Sweeper) overdue(ctx context.Context, team *v1alpha1.Team, a *agenda, entries []entry) ([]*v1alpha1.Post, error) {
	doubt, err := s.inDoubt(ctx, team.Spec.Namespace, a.times)
	if err != nil {
		return nil, err
	}
	var posts []*v1alpha1.Post
	for _, e := range entries {
		if err := s.pace.Wait(ctx); err != nil {
			return nil, fmt.Errorf("stopped while posts leave: %w", err)
		}
		post := &v1alpha1.Post{}
		err := s.APIReader.Get(ctx, types.NamespacedName{Namespace: team.Spec.Namespace, Name: e.name}, post)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("cannot read post %s/%s: %w", team.Spec.Namespace, e.name, err)
		}
		if !post.DeletionTimestamp.IsZero() || !post.Status.Finished || post.Status.FinishedAt == nil || !a.times.Leaves(post.Labels) {
			continue
		}
		if at := s.leavesAt(post, a.times); s.Clock.Now().Before(at) {
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

// remove takes the finalizer off and deletes a post, both as it was archived: one that was
// changed since is archived again first.
func (s *Sweeper) remove(ctx context.Context, post *v1alpha1.Post) error {
	before := post.DeepCopy()
	if controllerutil.RemoveFinalizer(post, v1alpha1.DeliveryFinalizer) {
		if err := s.Client.Patch(ctx, post, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ignoreGone(fmt.Errorf("cannot take the finalizer off the finished post %s/%s: %w", post.Namespace, post.Name, err))
		}
		s.Failpoint(PointAfterRelease)
	}
	err := s.Client.Delete(ctx, post, client.Preconditions{UID: &post.UID, ResourceVersion: &post.ResourceVersion})
	if err != nil {
		return ignoreGone(fmt.Errorf("cannot delete the finished post %s/%s: %w", post.Namespace, post.Name, err))
	}
	s.Failpoint(PointAfterDelete)
	s.Metrics.left()
	return nil
}

// ignoreGone returns nil if the object is gone.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// date notes when posts were finished that an older version finished. It returns when those
// are due.
func (s *Sweeper) date(ctx context.Context, a *agenda, namespace string, names []string) ([]entry, error) {
	var dated []entry
	for _, name := range names {
		if err := s.pace.Wait(ctx); err != nil {
			return dated, fmt.Errorf("stopped while the ends of posts are noted: %w", err)
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
				return dated, fmt.Errorf("cannot note when post %s/%s was finished: %w", namespace, name, err)
			}
			ctrl.LoggerFrom(ctx).V(1).Info("noted when a post was finished", "namespace", namespace, "name", name, "finishedAt", at)
		}
		if post.Status.FinishedAt != nil {
			dated = append(dated, entry{name: name, at: s.leavesAt(post, a.times)})
		}
	}
	return dated, nil
}
