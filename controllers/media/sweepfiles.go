// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/media/store"
)

// maxOrphans limits the deletions per sweep, so that operators have time to notice a mistake.
const maxOrphans = 1000

// sweepFiles compares the files in the store with the Media. It deletes files only in namespaces that belong to a Team
// or contain Media, so that a manager that is configured with another installation's bucket does not delete its files.
// It skips a bucket that is marked by another cluster; installation.Watch reports this.
func (s *sweeper) sweepFiles(ctx context.Context, byNamespace map[string][]*v1alpha1.Media) error {
	var others *installation.ForeignBucketError
	if err := s.MayDelete(ctx); errors.As(err, &others) {
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot sweep the files in the store: %w", err)
	}
	found, unlisted := newFindings(byNamespace, s.Clock.Now().Add(-orphanAfter))
	for object, err := range s.Store.List(ctx, "") {
		if errors.Is(err, store.ErrNone) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot list the files in the store: %w", err)
		}
		for _, m := range found.mediaByFile[object.Key] {
			if object.Key == store.Key(m) {
				delete(unlisted, m)
			}
		}
		if namespace, uid, derived, ok := store.ParseKey(object.Key); ok {
			_, ours := byNamespace[namespace]
			found.classify(object, namespace, uid, derived, ours)
		}
	}
	for m := range unlisted {
		if m.Status.Phase == v1alpha1.MediaUploaded && conditions.Reason(m.Status.Conditions) != v1alpha1.ReasonFileMissing {
			found.suspects[m] = true
		}
	}
	problems := []error{s.abandonParts(ctx, byNamespace, found.oldest)}
	for m := range found.suspects {
		problems = append(problems, s.recheckSuspect(ctx, m))
	}
	for namespace, uids := range found.orphans {
		problems = append(problems, s.removeOrphans(ctx, namespace, uids))
	}
	return errors.Join(problems...)
}

// abandonParts removes unfinished uploads in parts that started before the given time. Those of a Media
// that has expired are removed with its file.
func (s *sweeper) abandonParts(ctx context.Context, byNamespace map[string][]*v1alpha1.Media, oldest time.Time) error {
	err := s.Store.AbandonParts(ctx, "", func(key string, started time.Time) bool {
		namespace, _, derived, ok := store.ParseKey(key)
		_, ours := byNamespace[namespace]
		return ok && !derived && ours && started.Before(oldest)
	})
	if err != nil {
		return fmt.Errorf("cannot remove unfinished uploads: %w", err)
	}
	return nil
}

type findings struct {
	// mediaByFile holds all Media by the keys of their files. suspects holds the Media whose file does not match.
	mediaByFile map[string][]*v1alpha1.Media
	suspects    map[*v1alpha1.Media]bool
	// orphans holds UIDs without a Media, by namespace, with the time of each one's newest file; count is how many files
	// they have. A file newer than oldest may still get its Media.
	orphans map[string]map[string]time.Time
	count   int
	oldest  time.Time
}

// newFindings returns empty findings, and the set of all Media, whose files have not been listed yet.
func newFindings(byNamespace map[string][]*v1alpha1.Media, oldest time.Time) (found *findings, unlisted map[*v1alpha1.Media]bool) {
	found = &findings{
		mediaByFile: map[string][]*v1alpha1.Media{}, suspects: map[*v1alpha1.Media]bool{}, orphans: map[string]map[string]time.Time{}, oldest: oldest,
	}
	unlisted = map[*v1alpha1.Media]bool{}
	for _, list := range byNamespace {
		for _, m := range list {
			for _, key := range fileKeys(m) {
				found.mediaByFile[key] = append(found.mediaByFile[key], m)
			}
			unlisted[m] = true
		}
	}
	return found, unlisted
}

func (f *findings) classify(object store.Object, namespace, uid string, rendition, ours bool) {
	referring := f.mediaByFile[namespace+"/"+uid]
	for _, m := range referring {
		if namespace+"/"+uid == store.Key(m) && suspicious(m, object.ETag, rendition) {
			f.suspects[m] = true
		}
	}
	if len(referring) > 0 || !ours || object.ModifiedAt.After(f.oldest) || f.count >= maxOrphans {
		return
	}
	if f.orphans[namespace] == nil {
		f.orphans[namespace] = map[string]time.Time{}
	}
	if last := f.orphans[namespace][uid]; object.ModifiedAt.After(last) {
		f.orphans[namespace][uid] = object.ModifiedAt
	}
	f.count++
}

// suspicious reports whether a stored file does not match its Media: it was changed, has reappeared, or arrived after
// the wait was over. In those phases there must be no renditions either.
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

// recheckSuspect checks a Media whose file does not match, as read from the API server: the sweep's copy may be stale.
func (s *sweeper) recheckSuspect(ctx context.Context, m *v1alpha1.Media) error {
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
		return s.files.drop(ctx, &current)
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

// removeOrphans deletes a namespace's files without a Media and their renditions, after a check with the API server.
func (s *sweeper) removeOrphans(ctx context.Context, namespace string, uids map[string]time.Time) error {
	alive, err := s.liveUIDs(ctx, namespace)
	if err != nil {
		return err
	}
	created, err := s.createdAt(ctx, namespace)
	if err != nil {
		return err
	}
	var problems []error
	for uid, stored := range uids {
		if alive[uid] || awaitsRestore(stored, created, s.Clock.Now()) {
			continue
		}
		if err := s.Store.DeleteAll(ctx, namespace+"/"+uid); err != nil {
			problems = append(problems, fmt.Errorf("cannot delete the file %s/%s, which has no Media: %w", namespace, uid, err))
			continue
		}
		s.Metrics.incRemoved(removedOrphan)
		ctrllog.FromContext(ctx).Info("deleted a file that has no Media", "namespace", namespace, "uid", uid)
	}
	return errors.Join(problems...)
}

// awaitsRestore reports whether the Media of an orphaned file may still be restored: its namespace is younger than the
// file, so it was re-created, less than restoreWithin ago. Users who have access only to the namespace cannot cause
// this.
func awaitsRestore(stored, namespaceCreated, now time.Time) bool {
	return stored.Before(namespaceCreated) && now.Before(namespaceCreated.Add(restoreWithin))
}

func (s *sweeper) createdAt(ctx context.Context, name string) (time.Time, error) {
	namespace, err := kubeclient.ReadNamespace(ctx, s.APIReader, name)
	if namespace == nil {
		return time.Time{}, err //nolint:wrapcheck // the error has its context
	}
	return namespace.CreationTimestamp.Time, nil
}

// liveUIDs returns the UIDs in the keys of all files that Media of a namespace refer to, read from the API server.
func (s *sweeper) liveUIDs(ctx context.Context, namespace string) (map[string]bool, error) {
	uids := map[string]bool{}
	err := kubeclient.EachPage(ctx, func(ctx context.Context, page kubeclient.Page) (string, error) {
		list := metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MediaList"))
		if err := s.APIReader.List(ctx, &list, client.InNamespace(namespace), client.Limit(page.Limit), client.Continue(page.Continue)); err != nil {
			return "", fmt.Errorf("cannot list the media files of namespace %q: %w", namespace, err)
		}
		for i := range list.Items {
			uids[store.UIDOf(store.UIDKey(&list.Items[i]))] = true
			uids[store.UIDOf(store.Key(&list.Items[i]))] = true
		}
		return list.Continue, nil
	})
	return uids, err
}
