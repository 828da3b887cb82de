// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/media/store"
)

// A Media that was restored from a backup has a different UID than the original. An annotation holds its file's key.
// Users who may write Media may also write this annotation, so several Media may refer to one file. The file is deleted
// with the last of them, and no file is ever stored under a key from an annotation.

const fileIndex = "file"

// fileKeys returns the keys that a Media's file may be stored under: the current key, and the key in its annotation.
func fileKeys(obj client.Object) []string {
	m, ok := obj.(*v1alpha1.Media)
	switch {
	case !ok:
		return nil
	case store.Restored(m):
		return []string{store.UIDKey(m), store.Key(m)}
	default:
		return []string{store.UIDKey(m)}
	}
}

// discard deletes a Media's files and their renditions. It keeps a file that another Media refers to and, in another
// cluster's bucket, a file under a key from a backup. The sweep deletes those as soon as this is allowed.
func (r *Reconciler) discard(ctx context.Context, m *v1alpha1.Media) error {
	var problems []error
	for _, key := range fileKeys(m) {
		shared, err := r.shared(ctx, m, key)
		if err != nil {
			return err
		}
		if shared {
			continue
		}
		if key != store.UIDKey(m) {
			err = r.MayDelete(ctx)
		}
		var others *installation.ForeignBucketError
		switch {
		case errors.As(err, &others):
			ctrllog.FromContext(ctx).Info("kept the file of a deleted Media: the bucket belongs to another cluster", "key", key, "cluster", others.Cluster)
		case err != nil:
			problems = append(problems, err)
		default:
			problems = append(problems, r.abortUpload(ctx, m, key), r.Store.DeleteAll(ctx, key))
		}
	}
	return errors.Join(problems...)
}

// abortUpload removes the parts of a large file that never arrived: its team's budget no longer counts them.
func (r *Reconciler) abortUpload(ctx context.Context, m *v1alpha1.Media, key string) error {
	if key != store.UIDKey(m) || m.Spec.Source != nil || m.Spec.SizeBytes <= store.PartSize || m.Status.Phase == v1alpha1.MediaUploaded {
		return nil
	}
	err := r.Store.AbandonParts(ctx, key, func(found string, _ time.Time) bool { return found == key })
	if err != nil {
		return fmt.Errorf("cannot remove the file's unfinished upload: %w", err)
	}
	return nil
}

func (r *Reconciler) shared(ctx context.Context, m *v1alpha1.Media, key string) (bool, error) {
	var list v1alpha1.MediaList
	if err := r.Client.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingFields{fileIndex: key}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("cannot look for other Media that refer to the file: %w", err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.UID != m.UID && other.DeletionTimestamp.IsZero() {
			return true, nil
		}
	}
	return false, nil
}

func (r *Reconciler) recordFile(ctx context.Context, m *v1alpha1.Media) error {
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.FileAnnotation, store.UIDKey(m))
	if err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot note where the media file is: %w", err)
	}
	return nil
}
