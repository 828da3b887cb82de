// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// LateUploads is how long after the expiry of its address an upload may still arrive: the store checks the address when
// the upload starts.
const LateUploads = time.Hour

// UploadExpiry returns the expiry of the last upload address that the HTTP API issued for a file. For the same
// Idempotency-Key it issues another one, even after the file was verified.
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

// IdempotencyKeyExpiry returns the earliest expiry of the Idempotency-Key of a Media; zero if it was created without
// one.
func IdempotencyKeyExpiry(m *v1alpha1.Media) time.Time {
	if !hasIdempotencyKey(m) {
		return time.Time{}
	}
	return m.CreationTimestamp.Add(v1alpha1.KeyLifetime)
}

func hasIdempotencyKey(m *v1alpha1.Media) bool {
	return m.Annotations[v1alpha1.RequestAnnotation] != ""
}

// Overwritable reports whether the client that uploaded a file may replace it, through an address that it has or can
// get. There is no end to that: a store checks an address when an upload starts, and a client can upload arbitrarily
// slowly. A file that Herald fetched itself cannot be replaced by a client; a file that was stored for another object
// counts as overwritable, since its source is unknown.
func Overwritable(m *v1alpha1.Media) bool { return m.Spec.Source == nil || Restored(m) }
