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

// PullDirectlyLater fetches files one after another, each as PullDirectly does, while the caller goes on, and calls done with
// them, or with the error of the first that cannot be had, unless the store is closed before.
func (s *Store) PullDirectlyLater(urls []string, limit int64, done func([]Blob, error)) {
	s.later.run(func(ctx context.Context) {
		files, err := s.pullAll(ctx, urls, limit)
		if ctx.Err() == nil {
			done(files, err)
		}
	})
}

func (s *Store) pullAll(ctx context.Context, urls []string, limit int64) ([]Blob, error) {
	var files []Blob
	for _, url := range urls {
		file, err := s.PullDirectly(ctx, url, limit)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// AwaitPulls returns when nothing is fetched any more of what was asked for before. Nothing may be asked for meanwhile.
func (s *Store) AwaitPulls() { s.later.begun().Wait() }

// begun are the pulls under way.
func (l *later) begun() *sync.WaitGroup {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &l.running
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
