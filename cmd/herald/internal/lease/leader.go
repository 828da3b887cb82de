// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import "github.com/prometheus/client_golang/prometheus"

// NewLeaderMetric returns the metric that reports whether this process leads. It leads once elected is closed and until
// stopping is closed, when it releases the lease.
func NewLeaderMetric(elected, stopping <-chan struct{}) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "herald_leader", Help: "1 if this manager holds the lease and works, 0 if it waits to take over.",
	}, func() float64 {
		select {
		case <-stopping:
			return 0
		default:
		}
		select {
		case <-elected:
			return 1
		default:
			return 0
		}
	})
}
