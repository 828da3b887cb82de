// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/prometheus/client_golang/prometheus"

// newLeaderMetric is the metric that says whether this process works, which it does once elected is closed and until stopping is:
// then it has given its lease back.
func newLeaderMetric(elected, stopping <-chan struct{}) prometheus.Collector {
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
