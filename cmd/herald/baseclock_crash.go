// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build crashpoints

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// baseClock returns a clock of this machine that is wrong by what the file at HERALD_CRASH_CLOCK says, as Go writes
// durations ("-7m"). The test may replace the file, as a person sets a clock. It is built for the crash matrix only.
func baseClock() clock.WithTickerAndDelayedExecution {
	path := os.Getenv("HERALD_CRASH_CLOCK")
	if path == "" {
		return clock.RealClock{}
	}
	return &wrongClock{path: path}
}

// offsetEvery is how often the offset is read again: as soon as a test can tell, and not for each of many answers.
const offsetEvery = 50 * time.Millisecond

// wrongClock shows another time than the machine it runs on. Its timers are right: they count how long the machine runs,
// whatever its clock shows.
type wrongClock struct {
	clock.RealClock

	path string

	mu     sync.Mutex
	read   time.Time
	offset time.Duration
}

// Now implements clock.PassiveClock. The time has no monotonic part, which an offset would be added to as well.
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

// stored is what the file says. A test whose file cannot be read would test nothing.
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
