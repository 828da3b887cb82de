// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Fraction returns a number in [0, 1) that is derived from an object's UID. It is not random, so a time that is
// computed again, even after a restart, does not change.
func Fraction(uid types.UID) float64 {
	sum := sha256.Sum256([]byte(uid))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// Spread returns the object's part of a duration, in [0, d).
func Spread(d time.Duration, uid types.UID) time.Duration {
	return time.Duration(float64(d) * Fraction(uid))
}

// Jitter lengthens or shortens a duration by up to a tenth.
func Jitter(d time.Duration, uid types.UID) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*Fraction(uid)))
}
