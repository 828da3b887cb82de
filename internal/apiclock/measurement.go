// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import "time"

// Tolerance is the certain difference of the clocks above which they count as different.
const Tolerance = tolerance

// MaxSpread is the maximum distance between responses of the API that are trusted.
const MaxSpread = maxSpread

// Measurement is the state of the comparison of the two clocks.
type Measurement struct {
	// Correction is how far the API's clock is ahead of this machine's, negative if it is behind; zero while they do
	// not certainly differ by more than Tolerance.
	Correction time.Duration
	// Measured is false before the first response with a time.
	Measured bool
	// Unsettled: the last response certainly contradicts Correction, and the previous ones do not.
	Unsettled bool
	// Inconsistent: responses are more than MaxSpread apart, so that none is trusted. The process is not ready.
	Inconsistent bool
}

// Measurement returns the present state.
func (c *Clock) Measurement() Measurement {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high, n := c.bounds()
	// Samples are relative to the steady clock.
	now := c.set + c.correction
	return Measurement{
		Correction: c.correction, Measured: c.measured, Inconsistent: c.inconsistent(),
		Unsettled: n > 0 && (now < low-tolerance || now > high+tolerance),
	}
}
