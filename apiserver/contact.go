// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/bridge"
)

// maxSilence is how long keys and teams in memory count without word from the Kubernetes API. A
// key that is revoked meanwhile, or the subscription of a team that ends, stays good for so long
// here and no longer. Watches are heard of every 90 seconds.
const maxSilence = 5 * time.Minute

// watchClock tells how long a watch has been silent. It is not the clock of the configuration: how
// fast the Kubernetes API ends and takes up watches, no clock of a test decides.
var watchClock clock.PassiveClock = clock.RealClock{}

// watching is a watch that knows when it was last answered; zero for one that has not begun.
type watching interface{ LastContact() time.Time }

// current tells whether what is in memory is known to be what there is.
type current struct {
	clock   clock.PassiveClock
	watches []watching
}

// check is bridge.ErrBehind, with since when nothing was heard, or nil.
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
