// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pacing"
)

// firstSweep delays the first sweep, because the manager is busy after its start.
const firstSweep = 5 * time.Minute

// sweeper periodically checks all Media and the store. It deletes unused Media, and files without a Media.
type sweeper struct {
	*Reconciler

	// reviewed is when a namespace's Media were last compared with all its posts.
	reviewed map[string]time.Time
}

// sweep runs all steps for all namespaces; an error does not stop it.
func (s *sweeper) sweep(ctx context.Context) error {
	var media v1alpha1.MediaList
	var teams v1alpha1.TeamList
	if err := errors.Join(s.Client.List(ctx, &media), s.Client.List(ctx, &teams)); err != nil {
		return fmt.Errorf("cannot list media and teams: %w", err)
	}
	inCluster := map[string]time.Duration{}
	for i := range teams.Items {
		// The cache holds only the Media of watched namespaces. Elsewhere, every file would look like an orphan.
		if namespace := teams.Items[i].Spec.Namespace; s.Namespaces.Include(namespace) {
			inCluster[namespace] = s.Retention.Of(&teams.Items[i]).InCluster
		}
	}
	byNamespace := map[string][]*v1alpha1.Media{}
	for i := range media.Items {
		m := &media.Items[i]
		byNamespace[m.Namespace] = append(byNamespace[m.Namespace], m)
	}
	var problems []error
	for namespace, list := range byNamespace {
		rejectedFor, ok := inCluster[namespace]
		if !ok {
			rejectedFor = s.Retention.Of(nil).InCluster
		}
		problems = append(problems, s.sweepUses(ctx, namespace, list, rejectedFor))
	}
	for namespace := range inCluster {
		if byNamespace[namespace] == nil {
			byNamespace[namespace] = []*v1alpha1.Media{}
		}
	}
	for namespace := range s.reviewed {
		if byNamespace[namespace] == nil {
			delete(s.reviewed, namespace)
		}
	}
	problems = append(problems, s.sweepFiles(ctx, byNamespace))
	if err := errors.Join(problems...); err != nil {
		return err
	}
	s.Metrics.sweptAt(s.Clock.Now())
	return nil
}

// sweepUses determines which Media of a namespace are used, if one of them may be deleted or a review is due, and
// deletes the unused ones that are due. A rejected Media is kept for at least rejectedFor.
func (s *sweeper) sweepUses(ctx context.Context, namespace string, list []*v1alpha1.Media, rejectedFor time.Duration) error {
	now := s.Clock.Now()
	if s.reviewed == nil {
		s.reviewed = map[string]time.Time{}
	}
	goes, names := map[string]bool{}, map[string]bool{}
	for _, m := range list {
		if !m.DeletionTimestamp.IsZero() || !deletesWhenUnused(m) || m.Status.Phase == "" || m.Status.Phase == v1alpha1.MediaPending {
			continue
		}
		names[m.Name] = true
		if at, ok := deleteAt(m, s.UnusedAfter, rejectedFor); ok && !now.Before(at) {
			goes[m.Name] = true
		}
	}
	if len(names) == 0 || (len(goes) == 0 && !s.reviewDue(namespace, now)) {
		return nil
	}
	used, err := s.references.referenced(ctx, namespace, names)
	if err != nil {
		return err
	}
	s.reviewed[namespace] = now
	var problems []error
	for _, m := range list {
		if names[m.Name] {
			problems = append(problems, s.settle(ctx, m, used[m.Name], goes[m.Name]))
		}
	}
	return errors.Join(problems...)
}

// reviewDue reports whether a namespace's last review is older than UnusedAfter. After a start, reviews are spread.
func (s *sweeper) reviewDue(namespace string, now time.Time) bool {
	last, ok := s.reviewed[namespace]
	if !ok {
		last = now.Add(-pacing.Spread(s.UnusedAfter, types.UID(namespace)))
		s.reviewed[namespace] = last
	}
	return now.Sub(last) >= s.UnusedAfter
}

// settle records whether a Media is used, or deletes it. After a conflict, the Media is kept until the next sweep.
func (s *sweeper) settle(ctx context.Context, m *v1alpha1.Media, used, goes bool) error {
	m = m.DeepCopy()
	if !used { // A post may have been created since the others were read.
		var err error
		if used, err = s.references.inUse(ctx, m); err != nil {
			return err
		}
	}
	before := m.Status.DeepCopy()
	switch {
	case used:
		m.Status.UnusedSince = nil
	case m.Status.UnusedSince == nil:
		m.Status.UnusedSince = v1alpha1.NewTimePtr(s.Clock.Now())
	case goes:
		return s.remove(ctx, m)
	}
	return ignoreRace(s.write(ctx, m, before))
}

// remove deletes a Media; its finalizer removes the file.
func (s *sweeper) remove(ctx context.Context, m *v1alpha1.Media) error {
	reason := removedUnused
	switch m.Status.Phase {
	case v1alpha1.MediaExpired:
		reason = removedExpired
	case v1alpha1.MediaRejected:
		reason = removedRejected
	case v1alpha1.MediaPending, v1alpha1.MediaUploaded:
	}
	err := s.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion})
	if err == nil {
		s.Metrics.incRemoved(reason)
		ctrllog.FromContext(ctx).Info("deleted a media file that no post uses", "namespace", m.Namespace, "name", m.Name, "phase", m.Status.Phase)
		return nil
	}
	if ignoreRace(err) == nil {
		return nil
	}
	return fmt.Errorf("cannot delete the unused media file %s/%s: %w", m.Namespace, m.Name, err)
}

// ignoreRace returns nil after a conflict or if the object is gone; the next sweep retries.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
