// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestRecordLimit starts ten writes under a limit of four, or of one while the scheduler is busy. One of them ends in
// each step.
func TestRecordLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		// busy is whether the scheduler is busy at the start and before each write ends, and running the number of
		// running writes after it.
		busy    []bool
		running []int64
	}{
		"calm":            {"the limit is constant", []bool{false, false, false}, []int64{4, 4, 4}},
		"busy":            {"the limit is constant", []bool{true, true, true}, []int64{1, 1, 1}},
		"becomes calm":    {"the waiting writes start at once", []bool{true, true, false}, []int64{1, 1, 4}},
		"becomes busy":    {"running writes continue, and no other starts", []bool{false, true, true, true, true}, []int64{4, 3, 2, 1, 1}},
		"busy for a time": {"a write that waited for longer starts too", []bool{false, true, false}, []int64{4, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var busy atomic.Bool
				var running atomic.Int64
				busy.Store(tt.busy[0])
				limit, end := NewRecordLimit(4, 1, busy.Load), make(chan struct{})
				for range 10 {
					go func() {
						release := limit.Acquire()
						running.Add(1)
						<-end
						running.Add(-1)
						release()
					}()
				}
				synctest.Wait()
				for step, want := range tt.running {
					if step > 0 {
						busy.Store(tt.busy[step])
						end <- struct{}{}
						synctest.Wait()
					}
					if got := running.Load(); got != want {
						t.Errorf("%s: after %d writes, %d run, not %d", tt.reason, step, got, want)
					}
				}
				close(end)
			})
		})
	}
}
