// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kstatus"
	"github.com/herald-social/herald/internal/mediastore"
)

// maxOrphans is how many files one sweep removes at most: should it ever be
// wrong, somebody has the time to notice.
const maxOrphans = 1000

// fileKey is what the key of a media file looks like, namespace/UID. Whatever
// else lies in the bucket is somebody else's.
var fileKey = regexp.MustCompile(`^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// sweepFiles holds what lies in the store against the Media. Files are removed
// only in namespaces that belong to a Team or hold Media: a manager that is
// pointed at a store of another installation by mistake does no harm.
func (s *sweeper) sweepFiles(ctx context.Context, byNamespace map[string][]*v1alpha1.Media) error {
	now := s.Clock.Now()
	known := map[string]*v1alpha1.Media{}
	for _, list := range byNamespace {
		for _, m := range list {
			known[mediastore.Key(m)] = m
		}
	}
	var suspects []*v1alpha1.Media
	orphans := map[string][]string{}
	count := 0
	for object, err := range s.Store.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("cannot list the files in the store: %w", err)
		}
		parts := fileKey.FindStringSubmatch(object.Key)
		if parts == nil {
			continue
		}
		if m, ok := known[object.Key]; ok {
			delete(known, object.Key)
			if suspicious(m, object.ETag) {
				suspects = append(suspects, m)
			}
		} else if _, ours := byNamespace[parts[1]]; ours && now.Sub(object.ModifiedAt) >= s.Timing.OrphanAfter && count < maxOrphans {
			orphans[parts[1]] = append(orphans[parts[1]], parts[2])
			count++
		}
	}
	for _, m := range known { // Those whose file was not listed.
		if m.Status.Phase == v1alpha1.MediaUploaded && kstatus.Reason(m.Status.Conditions) != v1alpha1.ReasonFileMissing {
			suspects = append(suspects, m)
		}
	}
	var problems []error
	for _, m := range suspects {
		problems = append(problems, s.look(ctx, m))
	}
	for namespace, uids := range orphans {
		problems = append(problems, s.removeOrphans(ctx, namespace, uids))
	}
	return errors.Join(problems...)
}

// suspicious tells whether a file that lies in the store does not fit its
// Media: it was changed, is back, or came after its Media had ended.
func suspicious(m *v1alpha1.Media, etag string) bool {
	switch m.Status.Phase {
	case v1alpha1.MediaUploaded:
		return etag != m.Status.ETag || kstatus.Reason(m.Status.Conditions) == v1alpha1.ReasonFileMissing
	case v1alpha1.MediaRejected, v1alpha1.MediaExpired:
		return true
	case v1alpha1.MediaPending:
		return false
	default:
		return false
	}
}

// look examines a Media whose file does not fit, as the API server has it: what
// the sweep read may be old.
func (s *sweeper) look(ctx context.Context, m *v1alpha1.Media) error {
	var current v1alpha1.Media
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(m), &current); apierrors.IsNotFound(err) {
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

// removeOrphans removes files of a namespace that have no Media, if the API
// server says so too.
func (s *sweeper) removeOrphans(ctx context.Context, namespace string, uids []string) error {
	alive, err := s.liveUIDs(ctx, namespace)
	if err != nil {
		return err
	}
	var problems []error
	for _, uid := range uids {
		if alive[uid] {
			continue
		}
		if err := s.Store.Delete(ctx, namespace+"/"+uid); err != nil {
			problems = append(problems, fmt.Errorf("cannot remove the file %s/%s, which has no Media: %w", namespace, uid, err))
			continue
		}
		s.Metrics.gone(removedOrphan)
		ctrllog.FromContext(ctx).Info("removed a file that has no Media", "namespace", namespace, "uid", uid)
	}
	return errors.Join(problems...)
}

// ignoreRace takes it for no error that somebody else changed or deleted an
// object: the next sweep looks again.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
