// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package stack

import "time"

// CPU cannot be told on this system.
func (p *Process) CPU() time.Duration { return 0 }
