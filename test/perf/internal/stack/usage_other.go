// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package stack

import "time"

// CPU is not known on this system.
func CPU(int) time.Duration { return 0 }

// Memory is not known on this system.
func Memory(int) (now, peak int64) { return 0, 0 }

// ForgetPeak does nothing on this system.
func ForgetPeak(int) error { return nil }
