// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build crashpoints

package cluster

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// baseClock returns the machine's clock, shifted by the Go duration (such as "-7m") in the file named by
// HERALD_CRASH_CLOCK. The test may replace the file to simulate a changed clock. It exists only in the crash matrix's
// build.
func baseClock() clock.WithTickerAndDelayedExecution {
	path := os.Getenv("HERALD_CRASH_CLOCK")
	if path == "" {
		return clock.RealClock{}
	}
	return &wrongClock{path: path}
}

// offsetEvery is how often the offset is read: often enough for a test, but not on every response.
const offsetEvery = 50 * time.Millisecond

// wrongClock shows a different time from the machine's clock. Its timers measure elapsed time, so they are correct.
type wrongClock struct {
	clock.RealClock

	path string

	mu     sync.Mutex
	read   time.Time
	offset time.Duration
}

// Now implements clock.PassiveClock. It strips the monotonic reading, which would get the offset too.
func (w *wrongClock) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.RealClock.Now(); w.read.IsZero() || now.Sub(w.read) >= offsetEvery {
		w.read, w.offset = now, w.stored()
	}
	return w.RealClock.Now().Round(0).Add(w.offset)
}

// Since implements clock.PassiveClock.
func (w *wrongClock) Since(t time.Time) time.Duration { return w.Now().Sub(t) }

// stored returns the offset in the file. It panics on an error, because the test would otherwise prove nothing.
func (w *wrongClock) stored() time.Duration {
	text, err := os.ReadFile(w.path)
	if err != nil {
		panic(fmt.Sprintf("HERALD_CRASH_CLOCK: %v", err))
	}
	offset, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		panic(fmt.Sprintf("HERALD_CRASH_CLOCK: %s: %v", w.path, err))
	}
	return offset
}
