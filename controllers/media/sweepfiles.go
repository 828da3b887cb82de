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
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/store"
)

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
	case ok && rendition && ended(m), ok && !rendition && suspicious(m, object.ETag):
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
// changed, is back, or came after the wait was over.
func suspicious(m *v1alpha1.Media, etag string) bool {
	switch m.Status.Phase {
	case v1alpha1.MediaUploaded:
		return etag != m.Status.ETag || conditions.Reason(m.Status.Conditions) == v1alpha1.ReasonFileMissing
	case v1alpha1.MediaRejected, v1alpha1.MediaExpired:
		return true
	case v1alpha1.MediaPending:
		return false
	default:
		return false
	}
}

// ended reports whether the wait for a file is over without one, so that there must
// be no renditions either.
func ended(m *v1alpha1.Media) bool {
	return m.Status.Phase == v1alpha1.MediaRejected || m.Status.Phase == v1alpha1.MediaExpired
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
