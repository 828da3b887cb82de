// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"sync"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// typicalCall is the assumed duration of a platform's publishing call until one has been measured.
	typicalCall = 500 * time.Millisecond
	// callWeight is the weight of the latest call in the average: one in callWeight.
	callWeight = 8
	// maxPerAccount is the maximum number of an account's posts that are armed for the same time, however fast the
	// platform is.
	maxPerAccount = 10
)

// callTimes holds the moving averages of the durations of publishing calls, by platform.
type callTimes struct {
	mu       sync.Mutex
	averages map[v1alpha1.Platform]time.Duration
}

func newCallTimes() callTimes { return callTimes{averages: map[v1alpha1.Platform]time.Duration{}} }

func (c *callTimes) average(platform v1alpha1.Platform) time.Duration {
	if average, ok := c.averages[platform]; ok {
		return average
	}
	return typicalCall
}

func (c *callTimes) observe(platform v1alpha1.Platform, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	average := c.average(platform)
	c.averages[platform] = average + (took-average)/callWeight
}

// fit returns the number of an account's calls that can start within the given time, at least one. It plans with half
// the time, since some calls take longer than average.
func (c *callTimes) fit(platform v1alpha1.Platform, within time.Duration) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(min(max(within/2/max(c.average(platform), time.Millisecond), 1), maxPerAccount))
}
