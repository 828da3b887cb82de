// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/bridge"
)

// maxSilence is how long the caches of keys and teams remain valid without a response from the Kubernetes API. A key
// that is revoked or a subscription that ends in the meantime remains valid for at most that long. A watch receives a
// response every 90 seconds.
const maxSilence = 5 * time.Minute

// watchClock measures how long watches have been silent. It is always the real clock: a test clock does not control
// when the Kubernetes API ends and resumes watches.
var watchClock clock.PassiveClock = clock.RealClock{}

// watching is a watch that reports when it last received a response, or zero if it has not.
type watching interface{ LastContact() time.Time }

type current struct {
	clock   clock.PassiveClock
	watches []watching
}

// check returns bridge.ErrBehind with the time of the last response, or nil if the watches are fresh.
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
