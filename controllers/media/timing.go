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

// Timing says how long media files are waited for and kept. Zero values stand
// for the defaults.
type Timing struct {
	// UnusedAfter is how long a file is kept that no post refers to; 24 h.
	// An upload address in the status is renewed for as long.
	UnusedAfter time.Duration
	// UploadGrace is how long a file is still awaited after the address to
	// upload to has ended: an upload that began in time goes on; 1 h.
	UploadGrace time.Duration
	// FetchWithin is how long a source that cannot be fetched is tried again;
	// 1 h.
	FetchWithin time.Duration
	// SweepEvery is how often the store and the use of media files are looked
	// through; 1 h.
	SweepEvery time.Duration
	// OrphanAfter is how old a file must be that belongs to no Media before
	// it is removed; 24 h.
	OrphanAfter time.Duration
}

// withDefaults fills in what is not set.
func (t Timing) withDefaults() Timing {
	for field, value := range map[*time.Duration]time.Duration{
		&t.UnusedAfter: 24 * time.Hour,
		&t.UploadGrace: store.LateUploads,
		&t.FetchWithin: time.Hour,
		&t.SweepEvery:  time.Hour,
		&t.OrphanAfter: 24 * time.Hour,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	return t
}

const (
	// A file that is awaited is asked for after an eighth of the time that it
	// has been awaited, within these bounds: the pauses grow.
	pollSoonest, pollLatest = 2 * time.Second, 5 * time.Minute

	// A source is tried again after a quarter of the time that it has been
	// tried, within these bounds.
	fetchSoonest, fetchLatest = 5 * time.Second, 10 * time.Minute

	// renewAhead is how much of the life of an upload address must be left.
	renewAhead = v1alpha1.UploadURLLifetime / 3

	// lookAgainAfter is how long after the end of the last address to overwrite
	// it a verified file is looked at once more: clocks differ a little.
	lookAgainAfter = time.Minute
	// lookAgainWithin is how late that is still done; afterwards the next
	// sweep does it.
	lookAgainWithin = time.Hour
)

// pollPause is how long to wait before a file is asked for again that has been
// awaited for some time.
func pollPause(awaited time.Duration, uid types.UID) time.Duration {
	return jitter.Around(min(max(awaited/8, pollSoonest), pollLatest), uid)
}

// fetchPause is how long to wait before a source is tried again that has been
// tried for some time.
func fetchPause(tried time.Duration, uid types.UID) time.Duration {
	return jitter.Around(min(max(tried/4, fetchSoonest), fetchLatest), uid)
}

// fromAPI tells whether the HTTP API made a Media; its client has an address
// to upload to already.
func fromAPI(m *v1alpha1.Media) bool { return m.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginAPI }

// addressUntil is until when there is, or can be, a valid address to upload a
// file to: for the HTTP API's, the end of the last one that it handed out; for
// others, as long as their status offers one.
func addressUntil(m *v1alpha1.Media, t Timing) time.Time {
	if !fromAPI(m) {
		return m.CreationTimestamp.Add(t.UnusedAfter)
	}
	return store.HandedOutUntil(m)
}

// wait is what to do for a file that has not arrived.
type wait struct {
	// expired: it is not awaited any longer.
	expired bool
	// offer: a fresh address to upload to is due.
	offer bool
	// again is when to look next.
	again time.Duration
}

// await decides about a file that has not arrived.
func await(m *v1alpha1.Media, t Timing, now time.Time) wait {
	until := addressUntil(m, t)
	ends := until.Add(t.UploadGrace)
	if !now.Before(ends) {
		return wait{expired: true}
	}
	w := wait{again: min(pollPause(now.Sub(m.CreationTimestamp.Time), m.UID), ends.Sub(now))}
	if fromAPI(m) || !now.Before(until) {
		return w
	}
	w.offer = m.Status.UploadURL == "" || m.Status.UploadURLExpiresAt == nil || m.Status.UploadURLExpiresAt.Sub(now) < renewAhead
	return w
}

// lookAgain tells whether a verified file is to be looked at once more now,
// or else when (zero: never).
func lookAgain(m *v1alpha1.Media, now time.Time) (due bool, in time.Duration) {
	since := conditions.Since(m.Status.Conditions)
	if m.Spec.Source != nil || since.IsZero() {
		return false, 0
	}
	// An address in the status was replaced at the latest when the file was
	// verified.
	until := since.Add(v1alpha1.UploadURLLifetime)
	if fromAPI(m) {
		until = store.HandedOutUntil(m)
	}
	at := until.Add(lookAgainAfter)
	switch {
	case now.Before(at):
		return false, at.Sub(now)
	case now.Before(at.Add(lookAgainWithin)):
		return true, 0
	default:
		return false, 0
	}
}

// deletesWhenUnused tells whether a Media goes when it is not used.
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

// goesAt is when a Media that no post refers to is deleted; ok is false if it
// stays. One whose file was refused stays as long as a finished post would, so
// that its owner can read why.
func goesAt(m *v1alpha1.Media, t Timing, ttl time.Duration) (at time.Time, ok bool) {
	if m.Status.UnusedSince == nil || !deletesWhenUnused(m) {
		return time.Time{}, false
	}
	switch m.Status.Phase {
	case v1alpha1.MediaUploaded, v1alpha1.MediaExpired:
		at = m.Status.UnusedSince.Add(t.UnusedAfter)
		if underKey := store.KeyUntil(m); underKey.After(at) {
			at = underKey
		}
		return at, true
	case v1alpha1.MediaRejected:
		return m.Status.UnusedSince.Add(max(t.UnusedAfter, ttl)), true
	case v1alpha1.MediaPending:
		return time.Time{}, false
	default:
		return time.Time{}, false
	}
}
