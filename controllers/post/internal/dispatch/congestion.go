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
	// firstWindow limits concurrent writes until the API server's speed has been measured. At 30 writes per second, the
	// slowest rate that Herald is tested with, 32 writes take 1.1 seconds.
	firstWindow = 32
	// minWindow keeps some writes running, so that the measurement continues.
	minWindow = 4
)

// CongestionWindow limits concurrent writes by their latency, like the congestion window of TCP. It grows by one write
// per window of fast writes (by one per fast write until the first slow one) and halves when writes become slow.
//
// Without it, 256 claims would be written at once, regardless of what the API server can handle. Below 51 writes per
// second most of them would be stored after their send window. Each of these costs a second write, and a new claim
// later.
type CongestionWindow struct {
	clock clock.PassiveClock
	most  float64
	// A write that takes longer than slow shrinks the window; one that takes at most fast can grow it.
	slow, fast time.Duration

	mu       sync.Mutex
	size     float64
	underway int
	// searching is true until the first slow write. Until then, the window grows fast.
	searching bool
	// shrunk is the time when the window was last halved. Writes that started earlier do not shrink the window further.
	shrunk time.Time
	queue  []chan struct{}
}

// NewCongestionWindow returns a window for up to most concurrent writes. Each write must be stored within the given
// time; a write that takes more than a fifth of it is slow.
func NewCongestionWindow(most int, within time.Duration, c clock.PassiveClock) *CongestionWindow {
	slow := within / 5
	return &CongestionWindow{clock: c, most: float64(most), slow: slow, fast: slow * 3 / 10, size: min(firstWindow, float64(most)), searching: true}
}

// Acquire waits, first come, first served, until a write may start. The caller must call ended once the write has
// finished or was abandoned, and pass whether the API server processed it: a write that was rejected immediately or
// never sent does not measure the server's speed. Acquire returns only the context's error.
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
	} else { // the turn was granted at the same moment
		w.underway--
		w.next()
	}
	return nil, fmt.Errorf("stopped while waiting to write: %w", ctx.Err())
}

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

func (w *CongestionWindow) adjust(from time.Time) {
	switch took := w.clock.Since(from); {
	case took > w.slow && !from.Before(w.shrunk):
		w.size, w.shrunk, w.searching = max(w.size/2, min(minWindow, w.most)), w.clock.Now(), false
	case took <= w.fast && len(w.queue) > 0: // a window that is not full is not measured
		more := 1.0
		if !w.searching {
			more /= w.size
		}
		w.size = min(w.size+more, w.most)
	}
}

func (w *CongestionWindow) next() {
	for len(w.queue) > 0 && w.underway < int(w.size) {
		close(w.queue[0])
		w.queue = w.queue[1:]
		w.underway++
	}
}

// Size returns the limit on concurrent writes and the number of waiting writes.
func (w *CongestionWindow) Size() (size, waiting int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.size), len(w.queue)
}
