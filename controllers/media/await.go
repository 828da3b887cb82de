// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
)

// await checks whether a file was uploaded; if not, it offers an upload address, or
// ends the wait.
func (r *Reconciler) await(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	before := m.Status.DeepCopy()
	switch err := r.verify(ctx, m); {
	case err == nil:
		return 0, r.conclude(ctx, m, before)
	case errors.Is(err, store.ErrChanged):
		return r.overwritten(ctx, m, before)
	case !errors.Is(err, store.ErrNotFound):
		return 0, r.unavailable(ctx, m, before, err)
	}
	w := await(m, r.UnusedAfter, r.Clock.Now())
	if w.expired {
		m.Status.Phase = v1alpha1.MediaExpired
		r.describe(m, conditions.Summary{
			Reason:   v1alpha1.ReasonUploadExpired,
			Message:  "The file was not uploaded in time. Create another Media, or ask the API for another upload address.",
			Progress: conditions.Stuck,
		})
		return 0, r.conclude(ctx, m, before)
	}
	if w.offer {
		address, expires, err := r.Store.PresignPut(ctx, store.Key(m), string(m.Spec.MimeType))
		if err != nil {
			return 0, fmt.Errorf("cannot sign an address to upload to: %w", err)
		}
		m.Status.UploadURL, m.Status.UploadURLExpiresAt = address, v1alpha1.NewTimePtr(expires)
	}
	m.Status.Phase = v1alpha1.MediaPending
	message := "Waiting for the file to be uploaded to the address that the API gave."
	if !fromAPI(m) {
		message = "Waiting for the file: send it by HTTP PUT to status.uploadURL, with the header Content-Type: " + string(m.Spec.MimeType) + "."
	}
	r.describe(m, conditions.Summary{Reason: v1alpha1.ReasonAwaitingUpload, Message: message, Progress: conditions.Underway})
	return w.again, r.write(ctx, m, before)
}

// overwritten shows that the file is overwritten again and again, and returns when to
// check it again. It offers no fresh address meanwhile, so that this ends.
func (r *Reconciler) overwritten(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus) (time.Duration, error) {
	m.Status.Phase = v1alpha1.MediaPending
	r.describe(m, probe.Overwritten())
	return pollPause(r.Clock.Now().Sub(m.CreationTimestamp.Time), m.UID), r.write(ctx, m, before)
}

// unavailable shows that the store does not answer, and returns an error so that the
// work queue tries again. What the store said is for the log.
func (r *Reconciler) unavailable(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus, err error) error {
	m.Status.Phase = v1alpha1.MediaPending
	r.describe(m, conditions.Summary{
		Reason: v1alpha1.ReasonStoreUnavailable, Message: "The store of media files does not answer; the manager tries again.", Progress: conditions.Underway,
	})
	return errors.Join(fmt.Errorf("cannot verify the media file: %w", err), r.write(ctx, m, before))
}

// verify examines the file and sets the status that follows.
func (r *Reconciler) verify(ctx context.Context, m *v1alpha1.Media) error {
	status, err := r.Verify(ctx, m.DeepCopy())
	if err != nil {
		return err
	}
	m.Status = status
	return nil
}

// compare checks whether the file of a verified Media is still the verified one. A
// missing file is not given up: the store may be the wrong one, or come back.
func (r *Reconciler) compare(ctx context.Context, m *v1alpha1.Media) error {
	object, err := r.Store.Stat(ctx, store.Key(m))
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.describe(m, conditions.Summary{
			Reason:   v1alpha1.ReasonFileMissing,
			Message:  "The store does not have the file any more. Upload it as another Media, or check that the manager uses the right store.",
			Progress: conditions.Stuck,
		})
	case err != nil:
		return fmt.Errorf("cannot check the media file: %w", err)
	case object.ETag != m.Status.ETag:
		m.Status.Phase = v1alpha1.MediaRejected
		r.describe(m, conditions.Summary{
			Reason:   v1alpha1.ReasonFileChanged,
			Message:  "The file was overwritten after it had been verified. Upload it as another Media.",
			Progress: conditions.Stuck,
		})
	case conditions.Reason(m.Status.Conditions) == v1alpha1.ReasonFileMissing:
		r.describe(m, conditions.Summary{Ready: true, Reason: v1alpha1.ReasonUploaded, Message: "The file is in the store again.", Progress: conditions.Settled})
	}
	return nil
}
