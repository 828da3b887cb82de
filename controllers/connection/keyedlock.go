// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/internal/retries"
)

// lockRetryPause is how long a connection waits until it is looked at again while another one of its
// account is examined, for each that came before it in that time: a person who waits for the
// second one has a few seconds, and hundreds of them do not ask all the time.
const lockRetryPause = 250 * time.Millisecond

// keyedLock lets one examination at a time have a working copy: two connections of one account
// would otherwise renew the same token, since a claim holds off other processes only. The
// zero value is ready for use.
type keyedLock struct {
	mu      sync.Mutex
	holders map[types.NamespacedName]*lockHolder
}

// lockHolder is that of who has a working copy.
type lockHolder struct {
	released chan struct{}
	// refused counts who came meanwhile.
	refused int
}

// acquire waits until nobody has the working copy, and returns what gives it back. The error
// is that of ctx.
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

// tryAcquire returns what gives the working copy back, or, if somebody has it, after how long to try
// again. A worker of the controller does not wait: a team with many connections of one account
// would have all of them wait for that.
func (t *keyedLock) tryAcquire(key types.NamespacedName) (done func(), again time.Duration) {
	done, other := t.acquireOrHolder(key)
	if other == nil {
		return done, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	other.refused++
	return nil, min(time.Duration(other.refused)*lockRetryPause, retries.Most)
}

// acquireOrHolder takes the working copy, or returns whose turn it is.
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
