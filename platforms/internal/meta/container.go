// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"
)

// State is how far a graph is with a container: what it was handed to publish,
// and what nobody sees before that.
type State string

// The states of a container, as Threads and Instagram call them.
const (
	StateInProgress State = "IN_PROGRESS"
	StateFinished   State = "FINISHED"
	StatePublished  State = "PUBLISHED"
	StateError      State = "ERROR"
	StateExpired    State = "EXPIRED"
	// StateGone is ours: the graph knows no such container, or not for this
	// token.
	StateGone State = "gone"
)

// ParseState reads a state; false for a word that is none of a graph's.
func ParseState(word string) (State, bool) {
	known := []State{StateInProgress, StateFinished, StatePublished, StateError, StateExpired}
	return State(word), slices.Contains(known, State(word))
}

// firstPause is how long to wait before a container is asked for again. Texts
// and pictures are ready at once, or nearly.
const firstPause = 300 * time.Millisecond

// Await asks for a container until the graph is done with it, waiting twice as
// long from one time to the next, up to longest. ask reports whether the
// container is still in progress. The error is that of the context, if it ends
// first.
func Await(ctx context.Context, clk clock.Clock, longest time.Duration, ask func() (inProgress bool)) error {
	for pause := firstPause; ask(); pause = min(2*pause, longest) {
		timer := clk.NewTimer(pause)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
	return nil
}
