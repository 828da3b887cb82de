// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestCrowds(t *testing.T) {
	start := time.Date(2026, 12, 1, 8, 59, 0, 0, time.UTC)
	due := start.Add(time.Minute)
	const size = 3
	for name, tt := range map[string]struct {
		// early posts register a minute before they are due, and late ones after the first call of wake.
		early, late int
		others      int
		// first and second are the numbers of posts that two calls of wake return, at the given time and a moment later.
		at            time.Duration
		first, second int
		crowded       bool
	}{
		"too few posts are claimed when they are due":                  {early: size - 1, at: 50 * time.Second},
		"posts of different times do not form a crowd":                 {early: size - 1, others: size, at: 50 * time.Second},
		"a crowd is not claimed more than 15 s before its time":        {early: size, at: 45*time.Second - 1},
		"each of its posts is requeued once":                           {early: size, at: 45 * time.Second, first: size, crowded: true},
		"a post that is created later is requeued as well":             {early: size, late: 1, at: 50 * time.Second, first: size, second: 1, crowded: true},
		"posts that only then become a crowd are requeued immediately": {early: size - 1, late: 1, at: 50 * time.Second, second: size, crowded: true},
		"a large crowd is not claimed earlier than it needs":           {early: 2000, at: 40*time.Second - 1},
		"a large crowd has more time":                                  {early: 2000, at: 40 * time.Second, first: 2000, crowded: true},
		"a crowd is dropped at its time: its posts are due":            {early: size, at: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(start)
			o := &Options{Clock: clock, CrowdSize: size}
			c := newCrowds(o, newPostQueue(o, newPostStates()))
			expect := func(prefix string, n int, at time.Time) {
				for i := range n {
					for range 2 { // registering twice counts once
						c.expect(types.NamespacedName{Namespace: "team", Name: fmt.Sprint(prefix, i)}, at)
					}
				}
			}
			expect("early", tt.early, due)
			expect("other", tt.others, due.Add(time.Hour))
			clock.SetTime(start.Add(tt.at))
			if got := len(c.wake()); got != tt.first {
				t.Errorf("%d posts are woken, want %d", got, tt.first)
			}
			expect("late", tt.late, due)
			if got := len(c.wake()); got != tt.second {
				t.Errorf("%d posts are woken later, want %d", got, tt.second)
			}
			if got := c.isCrowded(due, clock.Now()); got != tt.crowded {
				t.Errorf("isCrowded = %t, want %t", got, tt.crowded)
			}
		})
	}
}
