// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import "context"

const (
	// fastCalls and slowCalls limit the concurrent calls, of about 60 KiB each. A receiver that failed, or took longer
	// than slowAfter, uses the slow lane until it responds quickly, so hanging receivers do not use up other receivers'
	// calls.
	fastCalls = 48
	slowCalls = 16
)

// lanes limit an installation's concurrent calls.
type lanes struct{ fast, slow chan struct{} }

func newLanes() lanes {
	return lanes{fast: make(chan struct{}, fastCalls), slow: make(chan struct{}, slowCalls)}
}

// enter waits for a slot, and returns the function that releases it.
func (l lanes) enter(ctx context.Context, isSlow bool) (leave func(), err error) {
	lane := l.fast
	if isSlow {
		lane = l.slow
	}
	select {
	case lane <- struct{}{}:
		return func() { <-lane }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
