// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure computes statistics from measurements.
package measure

import (
	"math"
	"slices"
)

// Median returns the middle value, the mean of the two in the middle, or zero if there are no values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Quantile returns the smallest value that at least the share q of the values does not exceed (nearest rank), or zero
// if there are no values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Rounded returns the value rounded to the given number of decimals, for output.
func Rounded(value float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(value*unit) / unit
}
