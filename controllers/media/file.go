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

// fileDeleter deletes the files of Media from the store.
type fileDeleter struct {
	client client.Reader
	store  Store
	// mayDelete is Options.MayDelete.
	mayDelete func(ctx context.Context) error
}

// drop deletes the file and its renditions from the store; a missing file is not an error.
func (d *fileDeleter) drop(ctx context.Context, m *v1alpha1.Media) error {
	if err := d.discard(ctx, m); err != nil && !errors.Is(err, store.ErrNone) {
		return fmt.Errorf("cannot delete the media file from the store: %w", err)
	}
	return nil
}

// discard deletes a Media's files and their renditions. It keeps a file that another Media refers to and, in another
// cluster's bucket, a file under a key from a backup. The sweep deletes those as soon as this is allowed.
func (d *fileDeleter) discard(ctx context.Context, m *v1alpha1.Media) error {
	var problems []error
	for _, key := range fileKeys(m) {
		shared, err := d.shared(ctx, m, key)
		if err != nil {
			return err
		}
		if shared {
			continue
		}
		if key != store.UIDKey(m) {
			err = d.mayDelete(ctx)
		}
		var others *installation.ForeignBucketError
		switch {
		case errors.As(err, &others):
			ctrllog.FromContext(ctx).Info("kept the file of a deleted Media: the bucket belongs to another cluster", "key", key, "cluster", others.Cluster)
		case err != nil:
			problems = append(problems, err)
		default:
			problems = append(problems, d.abortUpload(ctx, m, key), d.store.DeleteAll(ctx, key))
		}
	}
	return errors.Join(problems...)
}

// abortUpload removes the parts of a large file that never arrived: its team's budget no longer counts them.
func (d *fileDeleter) abortUpload(ctx context.Context, m *v1alpha1.Media, key string) error {
	if key != store.UIDKey(m) || m.Spec.Source != nil || m.Spec.SizeBytes <= store.PartSize || m.Status.Phase == v1alpha1.MediaUploaded {
		return nil
	}
	err := d.store.AbandonParts(ctx, key, func(found string, _ time.Time) bool { return found == key })
	if err != nil {
		return fmt.Errorf("cannot remove the file's unfinished upload: %w", err)
	}
	return nil
}

func (d *fileDeleter) shared(ctx context.Context, m *v1alpha1.Media, key string) (bool, error) {
	var list v1alpha1.MediaList
	if err := d.client.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingFields{fileIndex: key}, client.UnsafeDisableDeepCopy); err != nil {
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
