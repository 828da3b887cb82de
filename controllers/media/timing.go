// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/jitter"
	"github.com/herald-social/herald/internal/media/store"
)

const (
	// uploadGrace is how long to wait for a file after its upload address has ended,
	// since an upload that began in time goes on.
	uploadGrace = store.LateUploads
	// fetchWithin is how long a failing source is tried again.
	fetchWithin = time.Hour
	// sweepEvery is how often the store and the use of media files are swept.
	sweepEvery = time.Hour
	// orphanAfter is how old a file without a Media must be before it is deleted.
	orphanAfter = 24 * time.Hour
	// restoreWithin is how long after a namespace was made anew the files in it that are
	// older wait for their Media: a restore is begun, looked at and completed in that time.
	restoreWithin = 7 * 24 * time.Hour

	// dropWithin bounds one try to delete the file of a Media that goes, and abandonAfter
	// how long it is tried. The pauses are a quarter of the time since the deletion, within
	// these bounds.
	dropWithin                      = time.Minute
	abandonAfter                    = time.Hour
	finalizeSoonest, finalizeLatest = 5 * time.Second, 5 * time.Minute

	// An awaited file is checked after an eighth of the time that it has been
	// awaited, within these bounds: the pauses grow.
	pollSoonest, pollLatest = 2 * time.Second, 5 * time.Minute

	// A failing source is tried again after a quarter of the time that it has
	// failed, within these bounds.
	fetchSoonest, fetchLatest = 5 * time.Second, 10 * time.Minute

	// renewAhead is how much of the life of an upload address must be left.
	renewAhead = v1alpha1.UploadURLLifetime / 3

	// recheckAfterEnd is how long after the end of the last upload address a verified
	// file is checked once more: clocks differ a little.
	recheckAfterEnd = time.Minute
	// recheckWindow is how late that is still done; afterwards the next sweep does
	// it.
	recheckWindow = time.Hour
)

// pollPause returns how long to wait before the next check of an awaited file.
func pollPause(awaited time.Duration, uid types.UID) time.Duration {
	return jitter.Around(min(max(awaited/8, pollSoonest), pollLatest), uid)
}

// fetchPause returns how long to wait before the next try of a failing source.
func fetchPause(tried time.Duration, uid types.UID) time.Duration {
	return jitter.Around(min(max(tried/4, fetchSoonest), fetchLatest), uid)
}

// fromAPI reports whether the HTTP API created a Media; its client already has an
// upload address.
func fromAPI(m *v1alpha1.Media) bool { return m.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginAPI }

// addressUntil returns until when there can be a valid upload address: the end of the
// last one that the HTTP API handed out, or else as long as the status offers one.
func addressUntil(m *v1alpha1.Media, unusedAfter time.Duration) time.Time {
	if !fromAPI(m) {
		return m.CreationTimestamp.Add(unusedAfter)
	}
	return store.UploadExpiry(m)
}

// uploadPlan is what to do for a file that has not arrived.
type uploadPlan struct {
	// expired: it is not awaited any longer.
	expired bool
	// offer: a fresh upload address is due.
	offer bool
	// recheckAfter is when to look next.
	recheckAfter time.Duration
}

// planUpload decides about a file that has not arrived.
func planUpload(m *v1alpha1.Media, unusedAfter time.Duration, now time.Time) uploadPlan {
	until := addressUntil(m, unusedAfter)
	ends := until.Add(uploadGrace)
	if !now.Before(ends) {
		return uploadPlan{expired: true}
	}
	w := uploadPlan{recheckAfter: min(pollPause(now.Sub(m.CreationTimestamp.Time), m.UID), ends.Sub(now))}
	if fromAPI(m) || !now.Before(until) {
		return w
	}
	w.offer = m.Status.UploadURL == "" || m.Status.UploadURLExpiresAt == nil || m.Status.UploadURLExpiresAt.Sub(now) < renewAhead
	return w
}

// recheckDue reports whether a verified file is to be checked once more now, or else
// when (zero: never).
func recheckDue(m *v1alpha1.Media, now time.Time) (due bool, in time.Duration) {
	since := conditions.Since(m.Status.Conditions)
	if m.Spec.Source != nil || since.IsZero() {
		return false, 0
	}
	// The status has offered no new address since the file was verified.
	until := since.Add(v1alpha1.UploadURLLifetime)
	if fromAPI(m) {
		until = store.UploadExpiry(m)
	}
	at := until.Add(recheckAfterEnd)
	switch {
	case now.Before(at):
		return false, at.Sub(now)
	case now.Before(at.Add(recheckWindow)):
		return true, 0
	default:
		return false, 0
	}
}

// deletesWhenUnused reports whether a Media is deleted when it is not used.
func deletesWhenUnused(m *v1alpha1.Media) bool {
	switch m.Spec.WhenUnused {
	case v1alpha1.DeleteWhenUnused:
		return true
	case v1alpha1.KeepWhenUnused:
		return false
	default:
		return m.Spec.Source == nil
	}
}

// deleteAt returns when a Media without a post is deleted; ok is false if it stays. A
// rejected one stays as long as a finished post does in the cluster, so that its owner can read why.
func deleteAt(m *v1alpha1.Media, unusedAfter, rejectedFor time.Duration) (at time.Time, ok bool) {
	if m.Status.UnusedSince == nil || !deletesWhenUnused(m) {
		return time.Time{}, false
	}
	switch m.Status.Phase {
	case v1alpha1.MediaUploaded, v1alpha1.MediaExpired:
		at = m.Status.UnusedSince.Add(unusedAfter)
		if underKey := store.IdempotencyKeyExpiry(m); underKey.After(at) {
			at = underKey
		}
		return at, true
	case v1alpha1.MediaRejected:
		return m.Status.UnusedSince.Add(max(unusedAfter, rejectedFor)), true
	case v1alpha1.MediaPending:
		return time.Time{}, false
	default:
		return time.Time{}, false
	}
}
