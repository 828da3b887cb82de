// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// KeyTTL is how long an Idempotency-Key holds at least, whatever becomes of what it has
// created: a day, as clients know it from other services.
const KeyTTL = 24 * time.Hour

// KeyExpiresAt returns until when the Idempotency-Key holds under which an object was
// created; the zero time if there was none.
func KeyExpiresAt(o metav1.Object) time.Time {
	if o.GetAnnotations()[v1alpha1.RequestAnnotation] == "" {
		return time.Time{}
	}
	return o.GetCreationTimestamp().Add(KeyTTL)
}
