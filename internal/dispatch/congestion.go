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
	// slowWrite is the time of a write from which on fewer are made at once: a fifth of the 5 s within which the call
	// of a claim must begin. fastWrite is the time up to which more are.
	slowWrite = time.Second
	fastWrite = 300 * time.Millisecond
)

// CongestionWindow bounds the writes that are under way by how long they take, as the congestion window of TCP does:
// it grows by one write for each window of fast ones, at first by one for each, and halves when they become slow.
//
// Without it, a few hundred claims would be written at once, whatever the API server can do. One that does less than
// 51 writes a second would answer most of them after the time in which their calls must begin: nothing would be sent,
// each would cost a second write, and would come again.
type CongestionWindow struct {
	clock clock.PassiveClock
	most  float64

	mu       sync.Mutex
	size     float64
	underway int
	// searching is set until the first slow write: the window grows fast.
	searching bool
	// shrunk is when the window was halved. Writes that began before say nothing about the smaller one.
	shrunk time.Time
	queue  []chan struct{}
}

// NewCongestionWindow returns a window that never holds more than most writes.
func NewCongestionWindow(most int, c clock.PassiveClock) *CongestionWindow {
	return &CongestionWindow{clock: c, most: float64(most), size: min(firstWindow, float64(most)), searching: true}
}

// Enter waits until a write may begin, first come, first served. The caller calls ended when the write has been
// answered or given up. The error is that of the context.
func (w *CongestionWindow) Enter(ctx context.Context) (ended func(), err error) {
	w.mu.Lock()
	if w.underway < int(w.size) && len(w.queue) == 0 {
		w.underway++
		w.mu.Unlock()
		return w.begun(), nil
	}
	turn := make(chan struct{})
	w.queue = append(w.queue, turn)
	w.mu.Unlock()
	select {
	case <-turn:
		return w.begun(), nil
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

// begun returns what ends a write that begins now.
func (w *CongestionWindow) begun() func() {
	from := w.clock.Now()
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.learn(from)
		w.underway--
		w.next()
	})
}

// learn sizes the window by a write that began at a time and ends now.
func (w *CongestionWindow) learn(from time.Time) {
	switch took := w.clock.Since(from); {
	case took > slowWrite && !from.Before(w.shrunk):
		w.size, w.shrunk, w.searching = max(w.size/2, min(leastWindow, w.most)), w.clock.Now(), false
	case took <= fastWrite && len(w.queue) > 0: // a window that is not used up is not measured
		more := 1.0
		if !w.searching {
			more /= w.size
		}
		w.size = min(w.size+more, w.most)
	}
}

// next lets those begin that there is room for.
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
