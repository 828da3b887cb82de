// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

// LateUploads is how long after the end of its address an upload may still arrive:
// the store checks the address when the upload begins.
const LateUploads = time.Hour

// HandedOutUntil returns the end of the last upload address that the HTTP API handed
// out for a file. Under the same Idempotency-Key it hands out another one, even
// after the file was verified.
func HandedOutUntil(m *v1alpha1.Media) time.Time {
	until := m.CreationTimestamp.Add(v1alpha1.UploadURLLifetime)
	if underKey := KeyUntil(m); underKey.After(until) {
		until = underKey
	}
	if again, err := time.Parse(time.RFC3339, m.Annotations[v1alpha1.UploadUntilAnnotation]); err == nil && again.After(until) {
		return again
	}
	return until
}

// KeyUntil returns until when the Idempotency-Key of a Media holds at least; zero if
// it was created without one.
func KeyUntil(m *v1alpha1.Media) time.Time {
	if !underKey(m) {
		return time.Time{}
	}
	return m.CreationTimestamp.Add(v1alpha1.KeyLifetime)
}

func underKey(m *v1alpha1.Media) bool { return m.Annotations[v1alpha1.RequestAnnotation] != "" }

// Overwritable reports whether the client that uploaded the file of a verified Media
// may still replace it, through an address that it has or can get. No client can
// replace a file that Herald fetched itself.
func Overwritable(m *v1alpha1.Media, now time.Time) bool {
	switch verified := conditions.Since(m.Status.Conditions); {
	case m.Spec.Source != nil:
		return false
	case underKey(m), verified.IsZero():
		// Under its Idempotency-Key the client can get a fresh address as long as
		// the Media exists, between any two looks.
		return true
	default:
		until := HandedOutUntil(m)
		// An address in the status was replaced until the file was verified.
		if offered := verified.Add(v1alpha1.UploadURLLifetime); offered.After(until) {
			until = offered
		}
		return now.Before(until.Add(LateUploads))
	}
}
