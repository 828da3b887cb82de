// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// TestSomeStay keeps some of the expired posts in the lists.
func TestSomeStay(t *testing.T) {
	locked := errors.New("it is locked")
	for name, tc := range map[string]struct {
		reason string
		stay   []string
		plain  bool
		gone   int
	}{
		"one":  {"the others are forgotten", []string{"p0001"}, false, 4},
		"all":  {"nothing is forgotten", []string{"p0000", "p0001", "p0002", "p0003", "p0004"}, false, 0},
		"away": {"of an error that names none, nothing is known", nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			w := lists.NewWriter(storetest.NewMemory(clock.Now), clock)
			must.Succeed(t, w.Add(t.Context(), acme, many(5)))
			n, err := w.Expire(t.Context(), acme, epoch.Add(time.Hour), 100, func(context.Context, []lists.Ref) error {
				if tc.plain {
					return locked
				}
				stay := &lists.RetainedError{Names: map[string]bool{}, Err: locked}
				for _, name := range tc.stay {
					stay.Names[name] = true
				}
				return stay
			})
			if n != tc.gone || !errors.Is(err, locked) {
				t.Errorf("%s: %d went, want %d: %v", tc.reason, n, tc.gone, err)
			}
			if state, err := w.Stats(t.Context(), acme); err != nil || state.Posts != int64(5-tc.gone) {
				t.Errorf("%s: %+v are listed, %v", tc.reason, state, err)
			}
			view, err := w.View(t.Context(), acme)
			must.Succeed(t, err)
			for _, name := range tc.stay {
				if !view.Has(name) {
					t.Errorf("%s: %s is not listed", tc.reason, name)
				}
			}
			if n, err = w.Expire(t.Context(), acme, epoch.Add(time.Hour), 100, func(context.Context, []lists.Ref) error { return nil }); err != nil || n != 5-tc.gone {
				t.Errorf("%s: %d went then, %v", tc.reason, n, err)
			}
		})
	}
}
