// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import "maps"

// add adds the counts of another source. The posts of a namespace all have the same source.
func (c *snapshot) add(other *snapshot) {
	sum(c.phases, other.phases)
	sum(c.due, other.due)
	sum(c.suspended, other.suspended)
	sum(c.waiting, other.waiting)
	sum(c.undecided, other.undecided)
	sum(c.queues, other.queues)
	maps.Copy(c.overdue, other.overdue)
	maps.Copy(c.attempts, other.attempts)
	maps.Copy(c.uploads, other.uploads)
	maps.Copy(c.accounts, other.accounts)
	for name, rate := range other.rates {
		c.rates[name] = max(c.rates[name], rate)
	}
	for platform, limited := range other.appLimited {
		c.appLimited[platform] = c.appLimited[platform] || limited
	}
	c.claims += other.claims
}

func sum[K comparable](to, from map[K]int) {
	for name, n := range from {
		to[name] += n
	}
}
