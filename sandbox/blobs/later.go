// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"context"
	"sync"
)

// background are the pulls that nothing waits for.
type background struct {
	mu      sync.Mutex
	running sync.WaitGroup
	// closing ends when the store is closed.
	closing context.Context //nolint:containedctx // the pulls outlive the requests that begin them
	cancel  context.CancelFunc
}

// PullLater fetches files one after another in the background, each as Pull does, and calls done with them, or with the
// error of the first that cannot be had, unless the store is closed before.
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

// AwaitPulls returns when everything is fetched that was asked for before. Nothing may be asked for meanwhile.
func (s *Store) AwaitPulls() {
	b := &s.background
	b.mu.Lock() // what began before is counted: a pull begins under the lock
	running := &b.running
	b.mu.Unlock()
	running.Wait()
}

// close ends what is under way and waits until nothing is.
func (b *background) close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
}
