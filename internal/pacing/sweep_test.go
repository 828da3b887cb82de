// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/pacing"
)

func TestStart(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(context.Context) error
		want []time.Duration
	}{
		"a sweep that succeeds": {
			func(context.Context) error { return nil },
			[]time.Duration{5 * time.Minute, 65 * time.Minute, 125 * time.Minute},
		},
		"a failing sweep does not stop the loop": {
			func(context.Context) error { return errors.New("the store is unavailable") },
			[]time.Duration{5 * time.Minute, 65 * time.Minute, 125 * time.Minute},
		},
		"a hanging sweep is cancelled, and the pause follows": {
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			[]time.Duration{5 * time.Minute, 75 * time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 130*time.Minute)
				defer cancel()
				var got []time.Duration
				sweep := pacing.Sweep{Name: "test", First: 5 * time.Minute, Every: time.Hour, Within: 10 * time.Minute, Clock: clock.RealClock{}}
				sweep.Do = func(ctx context.Context) error {
					got = append(got, time.Since(begin))
					return tc.do(ctx)
				}
				if err := sweep.Start(ctx); err != nil {
					t.Errorf("the end of the process is an error: %v", err)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("sweeps after %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestOneManagerSweeps(t *testing.T) {
	if !(pacing.Sweep{}).NeedLeaderElection() {
		t.Error("each replica would sweep")
	}
}
