// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting"
)

// finalizer handles the deletion of Media: it deletes their files before the objects are gone.
type finalizer struct {
	client    client.Client
	apiReader client.Reader
	clock     clock.PassiveClock
	files     *fileDeleter
	// requests, owner and events are Options.Requests, Options.Owner and Options.Events.
	requests Requests
	owner    func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	events   events.EventRecorder
}

// finalize deletes the file of a Media that is being deleted, and then removes the finalizer. It returns the retry
// delay.
//
// If the store does not delete the file, the Media is kept for abandonAfter, unless its namespace is terminating or the
// store was removed from the configuration. The sweep deletes files that have no Media.
func (f *finalizer) finalize(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(m, v1alpha1.MediaFileFinalizer) {
		return 0, nil
	}
	failed := f.tryDrop(ctx, m)
	if failed == nil {
		return 0, f.release(ctx, m)
	}
	if ctx.Err() != nil {
		return 0, failed // the process is shutting down
	}
	left := abandonAfter - f.clock.Since(m.DeletionTimestamp.Time)
	// Read from the API server, because the result decides whether the file is abandoned.
	ending, err := kubeclient.IsNamespaceTerminating(ctx, f.apiReader, m.Namespace)
	switch {
	case err != nil:
		return 0, errors.Join(failed, err)
	case left > 0 && !ending && !errors.Is(failed, store.ErrNone):
		ctrllog.FromContext(ctx).Error(failed, "cannot delete a media file; retrying")
		return min(left, pacing.Jitter(min(max((abandonAfter-left)/4, finalizeSoonest), finalizeLatest), m.UID)), nil
	}
	if err := f.release(ctx, m); err != nil {
		return 0, err
	}
	ctrllog.FromContext(ctx).Error(failed, "released a Media whose file could not be deleted", "key", store.Key(m))
	f.reportAbandoned(m, ending)
	return 0, nil
}

// tryDrop records the request that created the Media and deletes the file. Its timeout leaves time for the next steps.
// Without a store, a Media that was never uploaded has no file to delete.
func (f *finalizer) tryDrop(ctx context.Context, m *v1alpha1.Media) error {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	if err := f.recordRequest(ctx, m); err != nil {
		return err
	}
	err := f.files.discard(ctx, m)
	if err == nil || errors.Is(err, store.ErrNone) && m.Status.Phase != v1alpha1.MediaUploaded {
		return nil
	}
	return fmt.Errorf("cannot delete the media file from the store: %w", err)
}

// recordRequest stores the request that created the Media until its Idempotency-Key expires, so that the key is not
// reused for another file. Without a bucket or a team, the key expires with the Media.
func (f *finalizer) recordRequest(ctx context.Context, m *v1alpha1.Media) error {
	if f.requests == nil || f.owner == nil || !f.clock.Now().Before(posting.KeyExpiresAt(m)) {
		return nil
	}
	team, err := f.owner(ctx, m.Namespace)
	if err != nil {
		return fmt.Errorf("cannot find the team of the media file's request: %w", err)
	}
	if team == nil {
		return nil
	}
	err = f.requests.PutRequest(ctx, archive.Team{Namespace: m.Namespace, Name: team.Name}, m.Name,
		archive.Request{UID: m.UID, Fingerprint: m.Annotations[v1alpha1.RequestAnnotation]})
	if err != nil && !errors.Is(err, archive.ErrNone) {
		return fmt.Errorf("cannot store the media file's Idempotency-Key: %w", err)
	}
	return nil
}

func (f *finalizer) release(ctx context.Context, m *v1alpha1.Media) error {
	before := m.DeepCopy()
	controllerutil.RemoveFinalizer(m, v1alpha1.MediaFileFinalizer)
	if err := f.client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot remove the finalizer from the media file: %w", err)
	}
	return nil
}

// reportAbandoned emits an event about a file that may remain in the store. A terminating namespace does not accept new
// events; the event then refers to the Namespace, which is cluster-scoped.
func (f *finalizer) reportAbandoned(m *v1alpha1.Media, ending bool) {
	if f.events == nil {
		return
	}
	note := fmt.Sprintf("Media %q is gone, but the store did not delete its file %q. While a Team owns the namespace, the sweep deletes the file "+
		"when the store responds again; otherwise delete it from the bucket.", m.Name, store.Key(m))
	if ending {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.Namespace}}
		f.events.Eventf(namespace, m, corev1.EventTypeWarning, v1alpha1.ReasonFileAbandoned, "Reconcile", "%s", note)
		return
	}
	f.events.Eventf(m, nil, corev1.EventTypeWarning, v1alpha1.ReasonFileAbandoned, "Reconcile", "%s", note)
}
