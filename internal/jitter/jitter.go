// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jitter spreads what many objects would do at the same time. It is not
// random: the same object has the same place each time, so that a time that is
// computed again, or after a restart, is the same.
package jitter

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Fraction returns the place of an object: a number from 0 up to, but not
// including, 1 that follows from its UID.
func Fraction(uid types.UID) float64 {
	sum := sha256.Sum256([]byte(uid))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// Within returns the object's part of a duration: from 0 up to, but not
// including, all of it.
func Within(d time.Duration, uid types.UID) time.Duration {
	return time.Duration(float64(d) * Fraction(uid))
}

// Around moves a duration by up to a tenth, down or up.
func Around(d time.Duration, uid types.UID) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*Fraction(uid)))
}
