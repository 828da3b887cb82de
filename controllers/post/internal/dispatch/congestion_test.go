// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// window is the time within which a write must be stored: the default send window.
const window = 5 * time.Second

// server handles writes one at a time, each taking the same time.
type server struct {
	mu   sync.Mutex
	each time.Duration
	idle time.Time
}

func (s *server) write() {
	s.mu.Lock()
	now := time.Now()
	if s.idle.Before(now) {
		s.idle = now
	}
	s.idle = s.idle.Add(s.each)
	pause := s.idle.Sub(now)
	s.mu.Unlock()
	time.Sleep(pause) //nolint:forbidigo // in a bubble of testing/synctest
}

func TestCongestionWindow(t *testing.T) {
	t.Parallel()
	const writers, writes = 256, 2000
	for name, tc := range map[string]struct {
		reason string
		each   time.Duration
		// longest limits the duration of each write, and within the total duration.
		longest, within time.Duration
		size            func(size int) bool
	}{
		"30 a second":   {"256 concurrent writes take 8.5 s each, too long for their calls", time.Second / 30, 1500 * time.Millisecond, writes * time.Second / 30, func(n int) bool { return n <= 32 }},
		"5 a second":    {"only the first writes are too slow", time.Second / 5, 7 * time.Second, writes * time.Second / 5, func(n int) bool { return n <= 8 }},
		"100 a second":  {"the window grows until writes become slow", time.Second / 100, time.Second, writes * time.Second / 100, func(n int) bool { return n >= 30 && n <= 100 }},
		"5000 a second": {"the number of workers is the limit", time.Second / 5000, 300 * time.Millisecond, writes * time.Second / 5000, func(n int) bool { return n > 200 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, s := NewCongestionWindow(writers, window, clock.RealClock{}), &server{each: tc.each}
				var mu sync.Mutex
				var longest time.Duration
				left := writes
				began := time.Now()
				var all sync.WaitGroup
				for range writers {
					all.Go(func() {
						for {
							mu.Lock()
							left--
							over := left < 0
							mu.Unlock()
							if over {
								return
							}
							ended, err := w.Acquire(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							from := time.Now()
							s.write()
							ended(true)
							mu.Lock()
							longest = max(longest, time.Since(from))
							mu.Unlock()
						}
					})
				}
				all.Wait()
				if longest > tc.longest {
					t.Errorf("%s: the longest write took %s, want at most %s", tc.reason, longest, tc.longest)
				}
				if took := time.Since(began); took > tc.within+tc.within/50 {
					t.Errorf("%s: writing took %s; the API server needs %s without idle time", tc.reason, took, tc.within)
				}
				if size, _ := w.Size(); !tc.size(size) || w.underway != 0 {
					t.Errorf("%s: the window is %d writes at the end, with %d in progress", tc.reason, size, w.underway)
				}
			})
		})
	}
}

// TestCongestionWindowRecovers slows the API server down and speeds it up again.
func TestCongestionWindowRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := NewCongestionWindow(64, window, clock.RealClock{}), &server{each: time.Second}
		run := func(writes int) {
			var all sync.WaitGroup
			for range writes {
				all.Go(func() {
					if ended, err := w.Acquire(t.Context()); err == nil {
						s.write()
						ended(true)
					}
				})
			}
			all.Wait()
		}
		run(200)
		if size, _ := w.Size(); size != minWindow {
			t.Errorf("a server with a latency of a second has a window of %d, want %d", size, minWindow)
		}
		s.each = time.Millisecond
		run(5000)
		if size, _ := w.Size(); size != 64 {
			t.Errorf("the server is fast again, but its window is %d, want 64", size)
		}
	})
}

// TestCongestionWindowReleases cancels the waiting writes.
func TestCongestionWindowReleases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewCongestionWindow(1, window, clock.RealClock{})
		ended, err := w.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := w.Acquire(ctx)
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		ended(true)
		ended(true) // a second call has no effect
		if again, err := w.Acquire(t.Context()); err != nil {
			t.Error(err)
		} else {
			again(true)
		}
		if _, waiting := w.Size(); w.underway != 0 || waiting != 0 {
			t.Errorf("%d are under way, and %d wait", w.underway, waiting)
		}
	})
}
