// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// firstWindow is how many writes are under way before the speed of the API server is known. At 30 writes a
	// second, the slowest that Herald is tested with, they take 1.1 seconds.
	firstWindow = 32
	// leastWindow keeps writes going, and with them the measurement.
	leastWindow = 4
)

// CongestionWindow bounds the writes that are under way by how long they take, as the congestion window of TCP does:
// it grows by one write for each window of fast ones, at first by one for each, and halves when they become slow.
//
// Without it, 256 claims would be written at once, whatever the API server can do. Below 51 writes a second most of them
// would be stored too late to be sent. Each would cost a second write, and a new claim later.
type CongestionWindow struct {
	clock clock.PassiveClock
	most  float64
	// slow is how long a write takes from which on fewer are made at once, and fast how long one takes at most for more.
	slow, fast time.Duration

	mu       sync.Mutex
	size     float64
	underway int
	// searching is set until the first slow write: the window grows fast.
	searching bool
	// shrunk is when the window was halved. Writes that began before say nothing about the smaller one.
	shrunk time.Time
	queue  []chan struct{}
}

// NewCongestionWindow returns a window that never holds more than most writes, each of which must be stored within a
// time. A write that takes a fifth of it is slow.
func NewCongestionWindow(most int, within time.Duration, c clock.PassiveClock) *CongestionWindow {
	slow := within / 5
	return &CongestionWindow{clock: c, most: float64(most), slow: slow, fast: slow * 3 / 10, size: min(firstWindow, float64(most)), searching: true}
}

// Acquire waits until a write may begin, first come, first served. The caller calls ended when the write has been
// answered or given up, and says whether the API server has worked on it: what was refused at once, or never sent, says
// nothing about its speed. The error is that of the context.
func (w *CongestionWindow) Acquire(ctx context.Context) (ended func(written bool), err error) {
	w.mu.Lock()
	if w.underway < int(w.size) && len(w.queue) == 0 {
		w.underway++
		w.mu.Unlock()
		return w.start(), nil
	}
	turn := make(chan struct{})
	w.queue = append(w.queue, turn)
	w.mu.Unlock()
	select {
	case <-turn:
		return w.start(), nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := slices.Index(w.queue, turn); at >= 0 {
		w.queue = slices.Delete(w.queue, at, at+1)
	} else { // its turn came in the same moment
		w.underway--
		w.next()
	}
	return nil, fmt.Errorf("stopped while waiting to write: %w", ctx.Err())
}

// start returns what ends a write that begins now.
func (w *CongestionWindow) start() func(written bool) {
	from := w.clock.Now()
	var once sync.Once
	return func(written bool) {
		once.Do(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if written {
				w.adjust(from)
			}
			w.underway--
			w.next()
		})
	}
}

// adjust sizes the window by a write that began at a time and ends now.
func (w *CongestionWindow) adjust(from time.Time) {
	switch took := w.clock.Since(from); {
	case took > w.slow && !from.Before(w.shrunk):
		w.size, w.shrunk, w.searching = max(w.size/2, min(leastWindow, w.most)), w.clock.Now(), false
	case took <= w.fast && len(w.queue) > 0: // a window that is not used up is not measured
		more := 1.0
		if !w.searching {
			more /= w.size
		}
		w.size = min(w.size+more, w.most)
	}
}

// next starts as many waiting writes as the window has room for.
func (w *CongestionWindow) next() {
	for len(w.queue) > 0 && w.underway < int(w.size) {
		close(w.queue[0])
		w.queue = w.queue[1:]
		w.underway++
	}
}

// Size returns how many writes may be under way, and how many wait for that.
func (w *CongestionWindow) Size() (size, waiting int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.size), len(w.queue)
}
