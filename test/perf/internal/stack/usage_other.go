// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package stack

import "time"

// CPUOf cannot be told on this system.
func CPUOf(int) time.Duration { return 0 }

// Memory cannot be told on this system.
func (p *Process) Memory() (now, peak int64) { return 0, 0 }

// MemoryParts cannot be told on this system.
func (*Process) MemoryParts() (anonymous, proportional int64) { return 0, 0 }

// ForgetPeak cannot be told anything on these systems.
func (*Process) ForgetPeak() error { return nil }
