// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// LateUploads is how long an upload may outlast its URL: the store checks the URL when the upload starts.
const LateUploads = time.Hour

// UploadExpiry returns the expiry of the last upload URL that the HTTP API issued for a file. For the same
// Idempotency-Key, the HTTP API issues another URL, even after the file was verified.
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

// IdempotencyKeyExpiry returns the earliest expiry of a Media's Idempotency-Key, or zero if it has none.
func IdempotencyKeyExpiry(m *v1alpha1.Media) time.Time {
	if !hasIdempotencyKey(m) {
		return time.Time{}
	}
	return m.CreationTimestamp.Add(v1alpha1.KeyLifetime)
}

func hasIdempotencyKey(m *v1alpha1.Media) bool {
	return m.Annotations[v1alpha1.RequestAnnotation] != ""
}

// Overwritable reports whether the client that uploaded a file may replace it, using a URL that it has or can get. This
// never ends: a store checks a URL when an upload starts, and a client can upload arbitrarily slowly. A file that
// Herald fetched itself cannot be replaced by a client. A file that was stored for another object counts as
// overwritable, since its source is unknown.
func Overwritable(m *v1alpha1.Media) bool { return m.Spec.Source == nil || Restored(m) }
