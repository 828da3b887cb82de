// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"maps"

	"github.com/herald-social/herald/controllers/post/internal/prepare"
)

// add adds the counts of another source. Two sources have posts of the same namespace while its team moves to another
// shard.
func (c *snapshot) add(other *snapshot) {
	sum(c.phases, other.phases)
	sum(c.due, other.due)
	sum(c.suspended, other.suspended)
	sum(c.waiting, other.waiting)
	sum(c.undecided, other.undecided)
	sum(c.queues, other.queues)
	for namespace, age := range other.overdue {
		c.overdue[namespace] = max(c.overdue[namespace], age)
	}
	for of, windows := range other.attempts {
		if c.attempts[of] == nil {
			c.attempts[of] = map[string]int{}
		}
		sum(c.attempts[of], windows)
	}
	for of, outlook := range other.uploads {
		all := c.uploads[of]
		c.uploads[of] = prepare.Outlook{Bytes: all.Bytes + outlook.Bytes, Late: all.Late + outlook.Late}
	}
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
