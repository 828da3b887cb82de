// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"context"
	"sync"
)

// background tracks the pulls that run in the background.
type background struct {
	mu      sync.Mutex
	running sync.WaitGroup
	// closing is cancelled by Close.
	closing context.Context //nolint:containedctx // the pulls outlive the requests that start them
	cancel  context.CancelFunc
}

// PullLater fetches files sequentially in the background, each as Pull does. It calls done with the files or the first
// error, unless the store is closed first.
func (s *Store) PullLater(urls []string, limit int64, follow Redirects, done func([]Blob, error)) {
	b := &s.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing.Err() != nil {
		return
	}
	b.running.Go(func() {
		var files []Blob
		for _, url := range urls {
			file, err := s.Pull(b.closing, url, limit, follow)
			if b.closing.Err() != nil {
				return
			}
			if err != nil {
				done(nil, err)
				return
			}
			files = append(files, file)
		}
		done(files, nil)
	})
}

// AwaitPulls waits for all earlier pulls. Pulls must not start during the call.
func (s *Store) AwaitPulls() {
	b := &s.background
	b.mu.Lock() // a pull starts under the lock, so all earlier pulls are counted
	running := &b.running
	b.mu.Unlock()
	running.Wait()
}

// close cancels the running pulls and waits for their end.
func (b *background) close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
}
