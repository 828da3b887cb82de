// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// LateUploads is how long after the end of its address an upload is waited for: the store
// checks the address when the upload begins.
const LateUploads = time.Hour

// UploadExpiry returns the end of the last upload address that the HTTP API handed
// out for a file. Under the same Idempotency-Key it hands out another one, even
// after the file was verified.
func UploadExpiry(m *v1alpha1.Media) time.Time {
	until := m.CreationTimestamp.Add(v1alpha1.UploadURLLifetime)
	if underKey := IdempotencyKeyExpiry(m); underKey.After(until) {
		until = underKey
	}
	if again, err := time.Parse(time.RFC3339, m.Annotations[v1alpha1.UploadUntilAnnotation]); err == nil && again.After(until) {
		return again
	}
	return until
}

// IdempotencyKeyExpiry returns until when the Idempotency-Key of a Media holds at least; zero if
// it was created without one.
func IdempotencyKeyExpiry(m *v1alpha1.Media) time.Time {
	if !hasIdempotencyKey(m) {
		return time.Time{}
	}
	return m.CreationTimestamp.Add(v1alpha1.KeyLifetime)
}

func hasIdempotencyKey(m *v1alpha1.Media) bool {
	return m.Annotations[v1alpha1.RequestAnnotation] != ""
}

// Overwritable reports whether the client that uploaded a file may replace it, through an
// address that it has or can get: at any time, since a store checks an address when an
// upload begins, and an upload may dribble for as long as its client likes. No client can
// replace a file that Herald fetched itself; of one that was stored for another object it is not
// known.
func Overwritable(m *v1alpha1.Media) bool { return m.Spec.Source == nil || Restored(m) }
