// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/internal/kubeclient"
)

// namespaceTTL is the TTL of a namespace's cached state. Thousands of its posts that wait for the store share a read.
const namespaceTTL = 5 * time.Second

type namespaceCache struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu     sync.Mutex
	states map[string]namespaceState
}

type namespaceState struct {
	terminating bool
	at          time.Time
}

func newNamespaceCache(o *Options) *namespaceCache {
	return &namespaceCache{reader: o.APIReader, clock: o.Clock, states: map[string]namespaceState{}}
}

func (e *namespaceCache) isTerminating(ctx context.Context, name string) (bool, error) {
	now := e.clock.Now()
	e.mu.Lock()
	found, ok := e.states[name]
	e.mu.Unlock()
	if ok && now.Sub(found.at) < namespaceTTL {
		return found.terminating, nil
	}
	is, err := kubeclient.IsNamespaceTerminating(ctx, e.reader, name)
	if err != nil {
		return false, err //nolint:wrapcheck // the error names the operation
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.states, func(_ string, old namespaceState) bool { return now.Sub(old.at) >= namespaceTTL })
	e.states[name] = namespaceState{is, now}
	return is, nil
}
