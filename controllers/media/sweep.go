// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/deadline"
	"github.com/herald-social/herald/internal/jitter"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/pages"
)

// defaultTTL is how long finished objects are kept in a namespace without a Team: the
// default of a Team's ttlAfterFinished.
const defaultTTL = 90 * 24 * time.Hour

// firstSweep is how long after its start a manager sweeps for the first time: at the
// start it has other work.
const firstSweep = 5 * time.Minute

// sweeper checks all Media and the store periodically. It deletes Media that no post
// uses, and files that belong to no Media.
type sweeper struct {
	*Reconciler

	// reviewed is when all Media of a namespace were last searched in all its posts.
	reviewed map[string]time.Time
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: one manager sweeps.
func (*sweeper) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (s *sweeper) Start(ctx context.Context) error {
	log := ctrllog.FromContext(ctx).WithName("media-sweep")
	timer := s.Clock.NewTimer(firstSweep)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
		}
		if err := s.sweepInTime(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "cannot sweep all media files; the next sweep tries again")
		}
		timer.Reset(sweepEvery)
	}
}

func (s *sweeper) sweepInTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline.Sweep)
	defer cancel()
	return s.sweep(ctx)
}

// sweep continues after an error with the next namespace or step.
func (s *sweeper) sweep(ctx context.Context) error {
	var media v1alpha1.MediaList
	var teams v1alpha1.TeamList
	if err := errors.Join(s.Client.List(ctx, &media), s.Client.List(ctx, &teams)); err != nil {
		return fmt.Errorf("cannot list media and teams: %w", err)
	}
	ttls := map[string]time.Duration{}
	for i := range teams.Items {
		// The list of Media is that of the namespaces which are watched. In others, each file
		// would look as if it belonged to none.
		if namespace := teams.Items[i].Spec.Namespace; s.Namespaces.Include(namespace) {
			ttls[namespace] = ttlOf(&teams.Items[i])
		}
	}
	byNamespace := map[string][]*v1alpha1.Media{}
	for i := range media.Items {
		m := &media.Items[i]
		byNamespace[m.Namespace] = append(byNamespace[m.Namespace], m)
	}
	var problems []error
	for namespace, list := range byNamespace {
		ttl, ok := ttls[namespace]
		if !ok {
			ttl = defaultTTL
		}
		problems = append(problems, s.sweepUses(ctx, namespace, list, ttl))
	}
	for namespace := range ttls {
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

func ttlOf(team *v1alpha1.Team) time.Duration {
	if ttl := team.Spec.TTLAfterFinished; ttl != nil {
		return ttl.Duration
	}
	return defaultTTL
}

// sweepUses finds out which Media of a namespace are used, if one of them may be
// deleted or a review is due, and deletes those that may go and are unused.
func (s *sweeper) sweepUses(ctx context.Context, namespace string, list []*v1alpha1.Media, ttl time.Duration) error {
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
		if at, ok := goesAt(m, s.UnusedAfter, ttl); ok && !now.Before(at) {
			goes[m.Name] = true
		}
	}
	if len(names) == 0 || (len(goes) == 0 && !s.reviewDue(namespace, now)) {
		return nil
	}
	used, err := s.referenced(ctx, namespace, names)
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

// reviewDue reports whether the posts of a namespace have not been searched for long.
// After a start, the namespaces are spread over time.
func (s *sweeper) reviewDue(namespace string, now time.Time) bool {
	last, ok := s.reviewed[namespace]
	if !ok {
		last = now.Add(-jitter.Within(s.UnusedAfter, types.UID(namespace)))
		s.reviewed[namespace] = last
	}
	return now.Sub(last) >= s.UnusedAfter
}

// settle records whether a Media is used, or deletes it. A Media that was changed in
// between stays until the next sweep.
func (s *sweeper) settle(ctx context.Context, m *v1alpha1.Media, used, goes bool) error {
	m = m.DeepCopy()
	if !used { // A post may have come in while the others were read.
		var err error
		if used, err = s.inUse(ctx, m); err != nil {
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
		s.Metrics.gone(reason)
		ctrllog.FromContext(ctx).Info("deleted a media file that no post uses", "namespace", m.Namespace, "name", m.Name, "phase", m.Status.Phase)
		return nil
	}
	if ignoreRace(err) == nil {
		return nil
	}
	return fmt.Errorf("cannot delete the unused media file %s/%s: %w", m.Namespace, m.Name, err)
}

// liveUIDs returns the UIDs of all Media of a namespace as the API server has
// them.
func (s *sweeper) liveUIDs(ctx context.Context, namespace string) (map[string]bool, error) {
	uids := map[string]bool{}
	err := pages.Each(ctx, func(ctx context.Context, page pages.Page) (string, error) {
		list := metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MediaList"))
		if err := s.APIReader.List(ctx, &list, client.InNamespace(namespace), client.Limit(page.Limit), client.Continue(page.Continue)); err != nil {
			return "", fmt.Errorf("cannot list the media files of namespace %q: %w", namespace, err)
		}
		for i := range list.Items {
			uids[string(list.Items[i].UID)] = true
		}
		return list.Continue, nil
	})
	return uids, err
}

// maxOrphans is how many files one sweep deletes at most: if it is ever wrong, people
// have time to notice.
const maxOrphans = 1000

// fileKey matches the key of a media file, namespace/UID, and of a rendition of it,
// namespace/UID.name. Other files in the bucket are not Herald's.
var fileKey = regexp.MustCompile(`^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(\.[0-9a-z]+)?$`)

// sweepFiles compares the files in the store with the Media. It deletes files only in
// namespaces that belong to a Team or hold Media: a manager that is pointed at the
// store of another installation by mistake does no harm.
func (s *sweeper) sweepFiles(ctx context.Context, byNamespace map[string][]*v1alpha1.Media) error {
	found := &findings{
		known: map[string]*v1alpha1.Media{}, suspects: map[string]*v1alpha1.Media{}, orphans: map[string]map[string]bool{},
		oldest: s.Clock.Now().Add(-orphanAfter),
	}
	for _, list := range byNamespace {
		for _, m := range list {
			found.known[store.Key(m)] = m
		}
	}
	unlisted := maps.Clone(found.known)
	for object, err := range s.Store.List(ctx, "") {
		if errors.Is(err, store.ErrNone) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot list the files in the store: %w", err)
		}
		delete(unlisted, object.Key)
		if parts := fileKey.FindStringSubmatch(object.Key); parts != nil {
			_, ours := byNamespace[parts[1]]
			found.note(object, parts[1], parts[2], parts[3] != "", ours)
		}
	}
	for key, m := range unlisted {
		if m.Status.Phase == v1alpha1.MediaUploaded && conditions.Reason(m.Status.Conditions) != v1alpha1.ReasonFileMissing {
			found.suspects[key] = m
		}
	}
	var problems []error
	for _, m := range found.suspects {
		problems = append(problems, s.look(ctx, m))
	}
	for namespace, uids := range found.orphans {
		problems = append(problems, s.removeOrphans(ctx, namespace, uids))
	}
	return errors.Join(problems...)
}

// findings is what a sweep finds in the store.
type findings struct {
	// known holds all Media by their key, and suspects those whose file does not fit.
	known, suspects map[string]*v1alpha1.Media
	// orphans holds UIDs without a Media, by namespace, and count how many files
	// they have. A file that is newer than oldest may be waiting for its Media.
	orphans map[string]map[string]bool
	count   int
	oldest  time.Time
}

// note compares a file, or a rendition of one, with its Media.
func (f *findings) note(object store.Object, namespace, uid string, rendition, ours bool) {
	key := namespace + "/" + uid
	m, ok := f.known[key]
	switch {
	case ok && suspicious(m, object.ETag, rendition):
		f.suspects[key] = m
	case !ok && ours && !object.ModifiedAt.After(f.oldest) && f.count < maxOrphans:
		if f.orphans[namespace] == nil {
			f.orphans[namespace] = map[string]bool{}
		}
		f.orphans[namespace][uid] = true
		f.count++
	}
}

// suspicious reports whether a file in the store does not fit its Media: it was
// changed, is back, or came after the wait was over. Then there must be no renditions
// either.
func suspicious(m *v1alpha1.Media, etag string, rendition bool) bool {
	switch m.Status.Phase {
	case v1alpha1.MediaUploaded:
		return !rendition && (etag != m.Status.ETag || conditions.Reason(m.Status.Conditions) == v1alpha1.ReasonFileMissing)
	case v1alpha1.MediaRejected, v1alpha1.MediaExpired:
		return true
	case v1alpha1.MediaPending:
		return false
	default:
		return false
	}
}

// look checks a Media whose file does not fit, as the API server has it: the copy of
// the sweep may be old.
func (s *sweeper) look(ctx context.Context, m *v1alpha1.Media) error {
	var current v1alpha1.Media
	if err := s.APIReader.Get(ctx, client.ObjectKeyFromObject(m), &current); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot read the media file %s/%s: %w", m.Namespace, m.Name, err)
	}
	if current.UID != m.UID || !current.DeletionTimestamp.IsZero() {
		return nil
	}
	switch current.Status.Phase {
	case v1alpha1.MediaRejected, v1alpha1.MediaExpired:
		return s.drop(ctx, &current)
	case v1alpha1.MediaUploaded:
		before := current.Status.DeepCopy()
		if err := s.compare(ctx, &current); err != nil {
			return err
		}
		if current.Status.Phase != v1alpha1.MediaUploaded {
			return ignoreRace(s.conclude(ctx, &current, before))
		}
		return ignoreRace(s.write(ctx, &current, before))
	case v1alpha1.MediaPending:
	}
	return nil
}

// removeOrphans deletes files of a namespace that have no Media, and their renditions,
// if the API server confirms it.
func (s *sweeper) removeOrphans(ctx context.Context, namespace string, uids map[string]bool) error {
	alive, err := s.liveUIDs(ctx, namespace)
	if err != nil {
		return err
	}
	var problems []error
	for uid := range uids {
		if alive[uid] {
			continue
		}
		if err := s.Store.DeleteAll(ctx, namespace+"/"+uid); err != nil {
			problems = append(problems, fmt.Errorf("cannot delete the file %s/%s, which has no Media: %w", namespace, uid, err))
			continue
		}
		s.Metrics.gone(removedOrphan)
		ctrllog.FromContext(ctx).Info("deleted a file that has no Media", "namespace", namespace, "uid", uid)
	}
	return errors.Join(problems...)
}

// ignoreRace returns nil if the object was changed or deleted meanwhile: the next sweep
// looks again.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
