// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !crashpoints

package cluster

import "k8s.io/utils/clock"

// baseClock returns this machine's clock. Every released build uses it.
func baseClock() clock.WithTickerAndDelayedExecution { return clock.RealClock{} }
