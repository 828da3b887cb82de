// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestRecordLimit starts ten writes under a limit of four. In each step, one of them ends, and its pause may follow. Rows
// in which several writes run use slow ones: all of their pauses have the maximum length.
func TestRecordLimit(t *testing.T) {
	const write, slow, half, long = 10 * time.Millisecond, 3 * time.Second, 6 * time.Second, maxPausing
	for name, tt := range map[string]struct {
		reason string
		// takes is the duration of each step's write.
		takes time.Duration
		// busy is whether the scheduler is busy at the start and before each write ends. early is the number of running
		// writes just before the pause would end, and running the number after it.
		busy           []bool
		early, running []int64
	}{
		"calm":            {"the limit is constant, and there are no pauses", write, []bool{false, false, false}, []int64{4, 4, 4}, []int64{4, 4, 4}},
		"busy":            {"a pause follows each write", write, []bool{true, true, true}, []int64{1, 0, 0}, []int64{1, 1, 1}},
		"becomes calm":    {"the waiting writes start at once", write, []bool{true, true, false}, []int64{1, 0, 4}, []int64{1, 1, 4}},
		"becomes busy":    {"running writes continue, and no other starts until they have ended", slow, []bool{false, true, true, true, true}, []int64{4, 3, 2, 1, 0}, []int64{4, 3, 2, 1, 1}},
		"busy for a time": {"the next write that ends lets several start", write, []bool{false, true, false}, []int64{4, 3, 4}, []int64{4, 3, 4}},
		"slow writes":     {"a pause has an upper limit, as the process may stop", slow, []bool{true, true, true}, []int64{1, 0, 0}, []int64{1, 1, 1}},
		"busy for long":   {"results must not wait for an account with slow calls", long, []bool{true, true, true}, []int64{1, 2, 2}, []int64{1, 2, 2}},
		"busy again":      {"each busy period starts with pauses", half, []bool{true, true, true, true, false, true, true, true}, []int64{1, 0, 0, 2, 4, 3, 2, 1}, []int64{1, 1, 1, 2, 4, 3, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var busy atomic.Bool
				var running atomic.Int64
				busy.Store(tt.busy[0])
				limit, end := NewRecordLimit(4, clock.RealClock{}, busy.Load), make(chan struct{})
				for range 10 {
					go func() {
						release := limit.Acquire()
						running.Add(1)
						<-end
						running.Add(-1)
						release()
					}()
				}
				elapse := func(d time.Duration) {
					time.Sleep(d) //nolint:forbidigo // the clock of the bubble
					synctest.Wait()
				}
				elapse(0)
				for step := range tt.running {
					if step > 0 {
						elapse(tt.takes)
						busy.Store(tt.busy[step])
						end <- struct{}{}
						elapse(min(pauseFactor*tt.takes, maxPause) - 1)
					}
					if got := running.Load(); got != tt.early[step] {
						t.Errorf("%s: after %d writes, %d run before the pause ends, not %d", tt.reason, step, got, tt.early[step])
					}
					if step > 0 {
						elapse(1)
					}
					if got := running.Load(); got != tt.running[step] {
						t.Errorf("%s: after %d writes, %d run, not %d", tt.reason, step, got, tt.running[step])
					}
				}
				busy.Store(false)
				close(end)
				elapse(maxPause)
			})
		})
	}
}

// TestBusy covers a scheduler with one place for posts and one for armed calls.
func TestBusy(t *testing.T) {
	stopping := make(chan struct{})
	close(stopping)
	for name, tt := range map[string]struct {
		reason string
		// posts contains an account for each post, and calls an account for each armed call. The calls' group is open.
		posts, calls []string
		stopping     chan struct{}
		want         bool
	}{
		"nothing waits":            {"a post and a call have their turn", []string{"a"}, []string{"b"}, nil, false},
		"a post waits":             {"its claim is urgent", []string{"a", "a"}, nil, nil, true},
		"an armed call waits":      {"the call is due", nil, []string{"a", "a"}, nil, true},
		"the process is stopping":  {"its posts wait in vain", []string{"a", "a"}, []string{"b", "b"}, stopping, false},
		"the process may not stop": {"a nil channel is never closed", []string{"a", "a"}, []string{"b", "b"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewScheduler(1).WithArmed(1)
			for i, account := range tt.posts {
				s.TryAcquire(Waiter{ID: fmt.Sprint("post", i)}, []string{account})
			}
			for i, account := range tt.calls {
				s.QueueArmed(Waiter{ID: fmt.Sprint("call", i)}, account).Open()
			}
			if got := s.BusyUntil(tt.stopping)(); got != tt.want {
				t.Errorf("%s: busy: %t", tt.reason, got)
			}
		})
	}
}
