// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// KeyTTL is the minimum lifetime of an Idempotency-Key, even after its object is deleted: a day, as in similar
// services.
const KeyTTL = 24 * time.Hour

// KeyExpiresAt returns the expiry time of the Idempotency-Key that an object was created with, or zero if there was
// none.
func KeyExpiresAt(o metav1.Object) time.Time {
	if o.GetAnnotations()[v1alpha1.RequestAnnotation] == "" {
		return time.Time{}
	}
	return o.GetCreationTimestamp().Add(KeyTTL)
}
