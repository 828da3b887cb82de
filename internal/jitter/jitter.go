// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jitter spreads the work of many objects over time. It is not random: an object has the same fraction each
// time, so that a time that is computed again, or after a restart, is the same.
package jitter

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Fraction returns an object's fraction: a number in [0, 1) that is derived from its UID.
func Fraction(uid types.UID) float64 {
	sum := sha256.Sum256([]byte(uid))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// Within returns the object's part of a duration, in [0, d).
func Within(d time.Duration, uid types.UID) time.Duration {
	return time.Duration(float64(d) * Fraction(uid))
}

// Around changes a duration by up to a tenth, down or up.
func Around(d time.Duration, uid types.UID) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*Fraction(uid)))
}
