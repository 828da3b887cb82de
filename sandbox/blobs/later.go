// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"context"
	"sync"
)

// later are the pulls for which nobody waits. The zero value has none.
type later struct {
	mu      sync.Mutex
	running sync.WaitGroup
	closed  bool
	// closing is closed when the pulls under way are to end; nil before the first of them.
	closing chan struct{}
}

// PullLater fetches a file as Pull does while the caller goes on, and calls done with the result, unless the store is
// closed before.
func (s *Store) PullLater(url string, limit int64, done func(Blob, error)) {
	s.later.run(func(ctx context.Context) {
		blob, err := s.Pull(ctx, url, limit)
		if ctx.Err() == nil {
			done(blob, err)
		}
	})
}

// run calls pull in the background, or not at all when it is too late. The context ends when the store is closed.
func (l *later) run(pull func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.closing == nil {
		l.closing = make(chan struct{})
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-l.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	l.running.Go(func() {
		defer cancel()
		pull(ctx)
	})
}

// close ends what is under way and waits until nothing is.
func (l *later) close() {
	l.mu.Lock()
	if l.closing != nil && !l.closed {
		close(l.closing)
	}
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
}
