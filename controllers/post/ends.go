// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/internal/namespaces"
)

// endsKnown is how long it is believed whether a namespace is being deleted: thousands of its
// posts, which wait for the store, do not ask each for itself.
const endsKnown = 5 * time.Second

// ends knows which namespaces are being deleted.
type ends struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[string]ending
}

// ending is whether a namespace was being deleted when it was read.
type ending struct {
	is bool
	at time.Time
}

func newEnds(o *Options) *ends {
	return &ends{reader: o.APIReader, clock: o.Clock, known: map[string]ending{}}
}

// namespace reports whether a namespace is being deleted, or is gone.
func (e *ends) namespace(ctx context.Context, name string) (bool, error) {
	now := e.clock.Now()
	e.mu.Lock()
	found, ok := e.known[name]
	e.mu.Unlock()
	if ok && now.Sub(found.at) < endsKnown {
		return found.is, nil
	}
	is, err := namespaces.Ends(ctx, e.reader, name)
	if err != nil {
		return false, err //nolint:wrapcheck // it says what was being done
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.known, func(_ string, old ending) bool { return now.Sub(old.at) >= endsKnown })
	e.known[name] = ending{is, now}
	return is, nil
}
