// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// turns lets one examination at a time have a working copy: two connections of one account
// would otherwise renew the same token, since a claim holds off other processes only. The
// zero value is ready for use.
type turns struct {
	mu    sync.Mutex
	taken map[types.NamespacedName]chan struct{}
}

// take waits until nobody has the working copy, and returns what gives it back. The error
// is that of ctx.
func (t *turns) take(ctx context.Context, key types.NamespacedName) (done func(), err error) {
	for {
		t.mu.Lock()
		other, ok := t.taken[key]
		if !ok {
			mine := make(chan struct{})
			if t.taken == nil {
				t.taken = map[types.NamespacedName]chan struct{}{}
			}
			t.taken[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.taken, key)
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other:
		}
	}
}
