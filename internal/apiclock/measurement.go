// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclock

import "time"

// Tolerance is by how much the clocks must certainly differ to be told apart.
const Tolerance = tolerance

// MaxSpread is how far answers of the API may be from each other, if they are to be believed.
const MaxSpread = maxSpread

// Measurement is what a process knows of the two clocks.
type Measurement struct {
	// Correction is how far the API's clock is taken to be ahead of this machine's, negative if it is behind; zero where they
	// do not certainly differ by more than Tolerance.
	Correction time.Duration
	// Measured is false before the first answer with a time.
	Measured bool
	// Unsettled: the last answer certainly says something else than Correction, and those before it do not.
	Unsettled bool
	// Inconsistent: answers are more than Apart from each other, so that neither is believed. The process is not ready.
	Inconsistent bool
}

// Measurement returns what is known now.
func (c *Clock) Measurement() Measurement {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high, n := c.bounds()
	// Answers are compared with how far this clock is ahead of one that nobody has set.
	now := c.set + c.correction
	return Measurement{
		Correction: c.correction, Measured: c.measured, Inconsistent: c.inconsistent(),
		Unsettled: n > 0 && (now < low-tolerance || now > high+tolerance),
	}
}
