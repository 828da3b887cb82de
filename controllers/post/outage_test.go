// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"errors"
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/archive"
)

// TestOutage makes one request after the other to a store, each after a pause, and looks at
// which are made.
func TestOutage(t *testing.T) {
	fails := errors.New("it does not answer")
	for name, tc := range map[string]struct {
		reason string
		pause  time.Duration
		answer error
		// asked is whether the request after a failure is made, and away for how long the
		// store is known to be away after it.
		asked bool
		away  time.Duration
	}{
		"at once":              {"it has just failed", 0, nil, false, 0},
		"within a second":      {"a store that refuses connections is not asked by thousands", 999 * time.Millisecond, nil, false, 999 * time.Millisecond},
		"after a second":       {"somebody has to find out", time.Second, nil, true, 0},
		"and it fails again":   {"it is away since the first failure", 5 * time.Second, fails, true, 5 * time.Second},
		"it has no record":     {"that is an answer", 5 * time.Second, fmt.Errorf("of a post: %w", archive.ErrNotFound), true, 0},
		"it has another thing": {"that is an answer", 5 * time.Second, &unreadable{fails}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
			o := &outage{clock: clock}
			if err := o.ask(func() error { return fails }); !errors.Is(err, fails) {
				t.Fatalf("the first request: %v", err)
			}
			clock.Step(tc.pause)
			if knows := o.knows(); knows == tc.asked {
				t.Errorf("%s: known to be away: %v", tc.reason, knows)
			}
			asked := false
			err := o.ask(func() error { asked = true; return tc.answer })
			if asked != tc.asked || errors.Is(err, errAway) == asked {
				t.Errorf("%s: asked %v, error %v", tc.reason, asked, err)
			}
			if away := o.lasts(); away != tc.away {
				t.Errorf("%s: away for %v, want %v", tc.reason, away, tc.away)
			}
		})
	}
}

// TestOneFindsOut has many ask at the same time.
func TestOneFindsOut(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	o, fails := &outage{clock: clock}, errors.New("it does not answer")
	others := func(want bool) {
		t.Helper()
		if asked := o.ask(func() error { return nil }) == nil; asked != want {
			t.Errorf("asked %v, want %v", asked, want)
		}
	}
	others(true)
	_ = o.ask(func() error { return fails })
	clock.Step(time.Second)
	_ = o.ask(func() error {
		others(false) // nobody hangs beside it
		clock.Step(15 * time.Second)
		others(false)
		return fails
	})
	others(false)
	clock.Step(time.Second)
	_ = o.ask(func() error {
		clock.Step(outageKnown)
		others(true) // it may have ended without a word
		return nil
	})
	others(true)
}
