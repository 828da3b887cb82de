// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/apiserver/bridge"
)

// heard is a watch that last received a response at the given time.
type heard time.Time

func (h heard) LastContact() time.Time { return time.Time(h) }

func TestCurrent(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) watching { return heard(now.Add(-d)) }
	for name, tc := range map[string]struct {
		reason  string
		watches []watching
		behind  bool
	}{
		"just now":    {"the caches are current", []watching{ago(0), ago(90 * time.Second)}, false},
		"an outage":   {"cached lists are served for a while", []watching{ago(0), ago(maxSilence)}, false},
		"a long one":  {"a key may have been revoked", []watching{ago(maxSilence + time.Second), ago(0)}, true},
		"of teams":    {"a subscription may have ended", []watching{ago(0), ago(maxSilence + time.Second)}, true},
		"not started": {"the caches were never filled", []watching{heard{}}, false},
		"the future":  {"a clock was set back", []watching{ago(-time.Hour)}, false},
		"not watched": {"the process has no watches", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &current{clock: clocktesting.NewFakePassiveClock(now), watches: tc.watches}
			if err := c.check(); errors.Is(err, bridge.ErrBehind) != tc.behind {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			s := &Server{current: c}
			s.ready.Store(true)
			if err := s.readyz(nil); (err != nil) != tc.behind {
				t.Errorf("%s: /readyz fails by %v", tc.reason, err)
			}
		})
	}
}
