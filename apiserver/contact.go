// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/bridge"
)

// maxSilence is how long the caches of keys and teams are valid without an answer from the Kubernetes API. A key that
// is revoked, or a subscription that ends, in the meantime stays valid for at most that time. A watch is answered every
// 90 seconds.
const maxSilence = 5 * time.Minute

// watchClock measures the silence of watches. It is not the configured clock: a test clock does not control when the
// Kubernetes API ends and resumes watches.
var watchClock clock.PassiveClock = clock.RealClock{}

// watching is a watch with the time of its last answer; zero before the first one.
type watching interface{ LastContact() time.Time }

// current reports whether the watches are fresh.
type current struct {
	clock   clock.PassiveClock
	watches []watching
}

// check returns bridge.ErrBehind with the time of the last answer, or nil.
func (c *current) check() error {
	now := c.clock.Now()
	for _, w := range c.watches {
		last := w.LastContact()
		if silent := now.Sub(last); !last.IsZero() && silent > maxSilence {
			return fmt.Errorf("%w since %s", bridge.ErrBehind, last.UTC().Format(time.RFC3339))
		}
	}
	return nil
}
