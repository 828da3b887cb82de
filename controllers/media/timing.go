// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/pacing"
)

const (
	// uploadGrace is how long to wait after an upload URL has expired: an upload may still be running.
	uploadGrace  = store.LateUploads
	fetchTimeout = time.Hour
	sweepEvery   = time.Hour
	// orphanAfter is the minimum age of a file without a Media before it is deleted.
	orphanAfter = 24 * time.Hour
	// restoreWithin is how long, after a namespace was re-created, its older files wait for their Media. It allows time
	// to start, check and complete a restore.
	restoreWithin = 7 * 24 * time.Hour

	// dropTimeout is the timeout for one attempt to delete a Media's file, and abandonAfter limits all attempts. Each
	// pause is a quarter of the time since the deletion, between finalizeSoonest and finalizeLatest.
	dropTimeout                     = time.Minute
	abandonAfter                    = time.Hour
	finalizeSoonest, finalizeLatest = 5 * time.Second, 5 * time.Minute

	// The pause between checks for a pending file is an eighth of the time waited, within these bounds.
	pollSoonest, pollLatest = 2 * time.Second, 5 * time.Minute

	// The pause before a failing source is retried is a quarter of the time since the creation, within these bounds.
	fetchSoonest, fetchLatest = 5 * time.Second, 10 * time.Minute

	// renewAhead is the minimum remaining lifetime of an upload URL.
	renewAhead = v1alpha1.UploadURLLifetime / 3

	// recheckAfterEnd is the time from the last upload URL's expiry to the last check of a verified file, for clock skew.
	recheckAfterEnd = time.Minute
	// recheckWindow is the latest time for that check. After that, it is left to the next sweep.
	recheckWindow = time.Hour
)

func pollPause(awaited time.Duration, uid types.UID) time.Duration {
	return pacing.Jitter(min(max(awaited/8, pollSoonest), pollLatest), uid)
}

func fetchPause(tried time.Duration, uid types.UID) time.Duration {
	return pacing.Jitter(min(max(tried/4, fetchSoonest), fetchLatest), uid)
}

// fromAPI reports whether the REST API created a Media, whose client then already has an upload URL.
func fromAPI(m *v1alpha1.Media) bool { return m.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginAPI }

// addressUntil returns the expiry time of the last upload URL, whether the REST API or the status offered it.
func addressUntil(m *v1alpha1.Media, unusedAfter time.Duration) time.Time {
	if !fromAPI(m) {
		return m.CreationTimestamp.Add(unusedAfter)
	}
	return store.UploadExpiry(m)
}

type uploadPlan struct {
	// expired: the wait is over.
	expired bool
	// offer: a new upload URL is needed.
	offer        bool
	recheckAfter time.Duration
}

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

// recheckDue reports whether a verified file is due for its recheck, and otherwise returns the time until then. Zero
// means never.
func recheckDue(m *v1alpha1.Media, now time.Time) (due bool, in time.Duration) {
	since := conditions.Since(m.Status.Conditions)
	if m.Spec.Source != nil || since.IsZero() {
		return false, 0
	}
	// The status has offered no new URL since the file was verified.
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

// deleteAt returns the time to delete an unused Media; ok is false if it is kept. A rejected Media is kept for as long
// as a finished post, so that its owner can read the reason.
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
