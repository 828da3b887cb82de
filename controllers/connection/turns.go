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

// inTurn is how long a connection waits until it is looked at again while another one of its
// account is examined, for each that came before it in that time: a person who waits for the
// second one has a few seconds, and hundreds of them do not ask all the time.
const inTurn = 250 * time.Millisecond

// turns lets one examination at a time have a working copy: two connections of one account
// would otherwise renew the same token, since a claim holds off other processes only. The
// zero value is ready for use.
type turns struct {
	mu    sync.Mutex
	taken map[types.NamespacedName]*turn
}

// turn is that of who has a working copy.
type turn struct {
	over chan struct{}
	// refused counts who came meanwhile.
	refused int
}

// take waits until nobody has the working copy, and returns what gives it back. The error
// is that of ctx.
func (t *turns) take(ctx context.Context, key types.NamespacedName) (done func(), err error) {
	for {
		done, other := t.next(key)
		if other == nil {
			return done, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other.over:
		}
	}
}

// try returns what gives the working copy back, or, if somebody has it, after how long to try
// again. A worker of the controller does not wait: a team with many connections of one account
// would have all of them wait for that.
func (t *turns) try(key types.NamespacedName) (done func(), again time.Duration) {
	done, other := t.next(key)
	if other == nil {
		return done, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	other.refused++
	return nil, min(time.Duration(other.refused)*inTurn, retries.Most)
}

// next takes the working copy, or returns whose turn it is.
func (t *turns) next(key types.NamespacedName) (done func(), other *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, ok := t.taken[key]; ok {
		return nil, other
	}
	mine := &turn{over: make(chan struct{})}
	if t.taken == nil {
		t.taken = map[types.NamespacedName]*turn{}
	}
	t.taken[key] = mine
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.taken, key)
		close(mine.over)
	}, nil
}
