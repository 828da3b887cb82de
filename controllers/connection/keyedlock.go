// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/internal/pacing"
)

// lockRetryPause is the requeue delay for a connection whose account is being examined for another connection,
// multiplied by the number of connections requeued in the meantime. This way, a second connection is examined within
// the few seconds that a user waits, but hundreds of connections do not all retry at once.
const lockRetryPause = 250 * time.Millisecond

// keyedLock is a mutex per working copy. Without it, two of an account's connections would renew the same token, since
// a claim only excludes other processes. The zero value is ready for use.
type keyedLock struct {
	mu      sync.Mutex
	holders map[types.NamespacedName]*lockHolder
}

type lockHolder struct {
	released chan struct{}
	// refused counts the failed attempts to acquire the lock.
	refused int
}

func (t *keyedLock) acquire(ctx context.Context, key types.NamespacedName) (done func(), err error) {
	for {
		done, other := t.acquireOrHolder(key)
		if other == nil {
			return done, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other.released:
		}
	}
}

// tryAcquire returns the lock's release function, or a retry delay if the lock is held. The controller's workers do not
// wait for the lock: a team with many connections for one account would block them all.
func (t *keyedLock) tryAcquire(key types.NamespacedName) (done func(), again time.Duration) {
	done, other := t.acquireOrHolder(key)
	if other == nil {
		return done, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	other.refused++
	return nil, min(time.Duration(other.refused)*lockRetryPause, pacing.MaxRetry)
}

func (t *keyedLock) acquireOrHolder(key types.NamespacedName) (done func(), other *lockHolder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, ok := t.holders[key]; ok {
		return nil, other
	}
	mine := &lockHolder{released: make(chan struct{})}
	if t.holders == nil {
		t.holders = map[types.NamespacedName]*lockHolder{}
	}
	t.holders[key] = mine
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.holders, key)
		close(mine.released)
	}, nil
}
