// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/text"
)

// checkUpload verifies an uploaded file. If there is no file yet, it offers an upload URL or stops waiting.
func (r *Reconciler) checkUpload(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	before := m.Status.DeepCopy()
	switch err := r.verify(ctx, m); {
	case err == nil:
		return 0, r.conclude(ctx, m, before)
	case errors.Is(err, store.ErrChanged):
		return r.reportOverwritten(ctx, m, before)
	case !errors.Is(err, store.ErrNotFound):
		return 0, r.reportUnavailable(ctx, m, before, err)
	}
	w := planUpload(m, r.UnusedAfter, r.Clock.Now())
	if w.expired {
		r.describe(m, v1alpha1.MediaExpired, conditions.Stuck, v1alpha1.ReasonUploadExpired,
			"The file was not uploaded in time. Create another Media, or request another upload URL from the API.")
		return 0, r.conclude(ctx, m, before)
	}
	if w.offer {
		if message, err := r.reservations.reserve(ctx, m); err != nil || message != "" {
			if err != nil {
				return 0, err
			}
			return r.reportBudgetFull(ctx, m, before, message)
		}
		address, expires, err := r.Store.PresignPut(ctx, store.UIDKey(m), string(m.Spec.MimeType), m.Spec.SizeBytes)
		if err != nil {
			return 0, fmt.Errorf("cannot sign an upload URL: %w", err)
		}
		m.Status.UploadURL, m.Status.UploadURLExpiresAt = address, v1alpha1.NewTimePtr(expires)
	}
	message := "Waiting for an upload to the URL that the API returned."
	if !fromAPI(m) {
		message = "Waiting for the file: send it by HTTP PUT to status.uploadURL, with the header Content-Type: " + string(m.Spec.MimeType) + "."
	}
	r.describe(m, v1alpha1.MediaPending, conditions.Underway, v1alpha1.ReasonAwaitingUpload, message)
	return w.recheckAfter, r.write(ctx, m, before)
}

// reportUnowned reports that no team owns a pending file's namespace, and removes the file's upload URL. A Team that
// acquires the namespace triggers a reconciliation.
func (r *Reconciler) reportUnowned(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	before := m.Status.DeepCopy()
	m.Status.UploadURL, m.Status.UploadURLExpiresAt = "", nil
	state := conditions.NoTeam(m.Namespace)
	r.describe(m, v1alpha1.MediaPending, state.Progress, state.Reason, state.Message)
	err := r.write(ctx, m, before)
	return r.status.RequeueAfter(m, 0), err
}

// reportOverwritten reports that the file keeps being overwritten, and returns the delay before the next check. It
// issues no new upload URL, so that the uploads end.
func (r *Reconciler) reportOverwritten(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus) (time.Duration, error) {
	state := probe.Overwritten()
	r.describe(m, v1alpha1.MediaPending, state.Progress, state.Reason, state.Message)
	return pollPause(r.Clock.Now().Sub(m.CreationTimestamp.Time), m.UID), r.write(ctx, m, before)
}

const noStore = "This installation has no media store: post text only, or ask the administrators to configure a store."

func isWithoutStore(m *v1alpha1.Media) bool {
	return conditions.Reason(m.Status.Conditions) == v1alpha1.ReasonStoreUnavailable
}

// reportUnavailable reports that the store is unavailable, and returns an error so that the work queue retries. The
// store's error appears only in the log.
func (r *Reconciler) reportUnavailable(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus, err error) error {
	if errors.Is(err, store.ErrNone) {
		r.describe(m, v1alpha1.MediaPending, conditions.Stuck, v1alpha1.ReasonStoreUnavailable, noStore)
		return r.write(ctx, m, before)
	}
	r.describe(m, v1alpha1.MediaPending, conditions.Underway, v1alpha1.ReasonStoreUnavailable,
		"The store of media files does not respond; Herald retries.")
	return errors.Join(fmt.Errorf("cannot verify the media file: %w", err), r.write(ctx, m, before))
}

func (r *Reconciler) verify(ctx context.Context, m *v1alpha1.Media) error {
	ctx, cancel := context.WithTimeout(ctx, pacing.VerificationTimeout)
	defer cancel()
	status, err := r.Verify(ctx, m.DeepCopy())
	if errors.Is(err, store.ErrNotFound) && store.Restored(m) {
		// A file that was uploaded or fetched after the restore has the Media's own key.
		own := m.DeepCopy()
		own.Annotations[v1alpha1.FileAnnotation] = store.UIDKey(m)
		if status, err = r.Verify(ctx, own); err == nil {
			err = r.recordFile(ctx, m)
		}
	}
	if err != nil {
		return err
	}
	m.Status = status
	return nil
}

// compare checks whether the stored file of a verified Media is still the verified one. A missing file is not final:
// the store may be misconfigured, or recover.
func (r *Reconciler) compare(ctx context.Context, m *v1alpha1.Media) error {
	object, err := r.Store.Stat(ctx, store.Key(m))
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.describe(m, v1alpha1.MediaUploaded, conditions.Stuck, v1alpha1.ReasonFileMissing,
			"The store no longer has the file. Upload it as another Media, or check that the manager uses the right store.")
	case err != nil:
		return fmt.Errorf("cannot check the media file: %w", err)
	case object.ETag != m.Status.ETag:
		r.describe(m, v1alpha1.MediaRejected, conditions.Stuck, v1alpha1.ReasonFileChanged,
			"The file was overwritten after it had been verified. Upload it as another Media.")
	case conditions.Reason(m.Status.Conditions) == v1alpha1.ReasonFileMissing, isWithoutStore(m):
		r.describe(m, v1alpha1.MediaUploaded, conditions.Settled, v1alpha1.ReasonUploaded, "The file is in the store again.")
	}
	return nil
}

// fetch downloads a Media's file from its source and verifies it like an upload. It does not download a file that is
// already in the store because an earlier process exited before it wrote the status.
func (r *Reconciler) fetch(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	before := m.Status.DeepCopy()
	switch err := r.verify(ctx, m); {
	case err == nil:
		return 0, r.conclude(ctx, m, before)
	case !errors.Is(err, store.ErrNotFound):
		return 0, r.reportUnavailable(ctx, m, before, err)
	}
	if message, err := r.reservations.reserve(ctx, m); err != nil || message != "" {
		if err != nil {
			return 0, err
		}
		return r.reportBudgetFull(ctx, m, before, message)
	}
	turn, give, ok := r.fetchSlots.acquire(ctx, m.Namespace)
	if !ok {
		return pacing.Jitter(fetchSoonest, m.UID), r.write(ctx, r.markFetching(m), before)
	}
	defer give()
	if m.Status.Phase == "" || wasFetchDelayed(m) {
		if err := r.write(ctx, r.markFetching(m), before); err != nil {
			return 0, err
		}
		before = m.Status.DeepCopy()
	} else if current, err := r.isCurrent(ctx, m); err != nil || !current {
		return conflictPause, err
	}
	var problem *fetch.DownloadError
	switch err := r.download(turn, m); {
	case err != nil && errors.Is(context.Cause(turn), errPreempted):
		return pacing.Jitter(fetchSoonest, m.UID), nil // the download restarts when its team has a slot again
	case errors.As(err, &problem):
		ctrllog.FromContext(ctx).Info("cannot fetch the source", "reason", problem.Message, "cause", problem.Unwrap(), "final", problem.Final)
		return r.reportFetchFailed(ctx, m, before, problem)
	case err != nil:
		return 0, fmt.Errorf("cannot put the fetched file into the store: %w", err)
	}
	if err := r.verify(ctx, m); err != nil { // No client has an upload URL.
		return 0, fmt.Errorf("cannot verify the fetched file: %w", err)
	}
	return 0, r.conclude(ctx, m, before)
}

func wasFetchDelayed(m *v1alpha1.Media) bool {
	reason := conditions.Reason(m.Status.Conditions)
	return reason == v1alpha1.ReasonStoreUnavailable || reason == v1alpha1.ReasonNoTeam || reason == v1alpha1.ReasonBudgetLimit
}

// markFetching sets the status to fetching, unless the status already reports the progress of the fetch.
func (r *Reconciler) markFetching(m *v1alpha1.Media) *v1alpha1.Media {
	m.Status.Phase = v1alpha1.MediaPending
	if conditions.Reason(m.Status.Conditions) == "" || wasFetchDelayed(m) {
		r.describe(m, v1alpha1.MediaPending, conditions.Underway, v1alpha1.ReasonFetching, "Fetching the file from its source.")
	}
	return m
}

// isCurrent reports whether a Media is unchanged. A stale copy must not cause a second download of a gigabyte.
func (r *Reconciler) isCurrent(ctx context.Context, m *v1alpha1.Media) (bool, error) {
	var now v1alpha1.Media
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(m), &now); err != nil {
		return false, fmt.Errorf("cannot read the media file again: %w", err)
	}
	return now.UID == m.UID && now.DeletionTimestamp.IsZero() && now.Status.Phase == m.Status.Phase, nil
}

func (r *Reconciler) download(ctx context.Context, m *v1alpha1.Media) error {
	want := fetch.Expected{MIMEType: string(m.Spec.MimeType), Size: m.Spec.SizeBytes, MaxSize: v1alpha1.MaxImageBytes}
	if strings.HasPrefix(want.MIMEType, "video/") {
		want.MaxSize = v1alpha1.MaxVideoBytes
	}
	return r.Source.Get(ctx, m.Spec.Source.URL, want, func(ctx context.Context, size int64, body io.Reader) error {
		_, err := r.Store.Put(ctx, store.UIDKey(m), want.MIMEType, size, body)
		if err == nil {
			r.Metrics.fetched(size)
		}
		return err
	})
}

func (r *Reconciler) reportFetchFailed(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus, p *fetch.DownloadError) (time.Duration, error) {
	tried := r.Clock.Now().Sub(m.CreationTimestamp.Time)
	sentence := cannotFetch(m.Spec.Source.URL, p.Message)
	switch {
	case p.Final:
		r.Metrics.refused()
		r.describe(m, v1alpha1.MediaRejected, conditions.Stuck, v1alpha1.ReasonSourceRefused,
			sentence+" Create another Media with another source.")
		return 0, r.conclude(ctx, m, before)
	case tried >= fetchTimeout:
		r.Metrics.failed()
		r.describe(m, v1alpha1.MediaRejected, conditions.Stuck, v1alpha1.ReasonFetchFailed,
			sentence+" Herald has stopped trying; create another Media when the source responds.")
		return 0, r.conclude(ctx, m, before)
	default:
		r.Metrics.failed()
		r.describe(m, v1alpha1.MediaPending, conditions.Underway, v1alpha1.ReasonFetchFailed, sentence+" Herald retries.")
		return fetchPause(tried, m.UID), r.write(ctx, m, before)
	}
}

// longestAddress limits a source's URL in a message, in bytes, so that the whole sentence fits into an event.
const longestAddress = 256

// cannotFetch returns the message for a source that cannot be fetched. It omits the URL's query and fragment, which may
// hold signatures.
func cannotFetch(address, problem string) string {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return "The source " + text.TruncateBytes(address, longestAddress) + " cannot be fetched: " + problem + "."
}
